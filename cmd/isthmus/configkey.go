package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"isthmus.dev/isthmus/federation/config/schema"
)

// unknownKey says which key the config file does not have, by its whole path, and which
// one may be meant.
func unknownKey(data []byte, unknown *yaml.UnknownFieldError) string {
	at := unknown.Token.Position
	said := fmt.Sprintf("[%d:%d] unknown key ", at.Line, at.Column)
	file, err := parser.ParseBytes(data, 0)
	if err != nil || len(file.Docs) == 0 {
		return said + fmt.Sprintf("%q", unknown.Token.Value)
	}
	search := keySearch{at: at}
	search.in(file.Docs[0].Body, reflect.TypeFor[configFile](), "")
	if search.of == nil {
		return said + fmt.Sprintf("%q", unknown.Token.Value)
	}
	said += fmt.Sprintf("%q", search.path+unknown.Token.Value)
	known := keysOf(search.of)
	if near := schema.Nearest(unknown.Token.Value, known); near != "" {
		return said + fmt.Sprintf("; did you mean %q?", search.path+near)
	}
	return said + "; the keys here are " + strings.Join(known, ", ")
}

// keySearch searches the mapping that has a key at a position.
type keySearch struct {
	at   *token.Position
	path string       // of the mapping, with a dot at its end
	of   reflect.Type // the struct that the mapping is read into; nil: not found
}

func (s *keySearch) in(node ast.Node, t reflect.Type, path string) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		s.in(n.Value, t, path)
	case *ast.MappingValueNode:
		s.inPair(n, t, path)
	case *ast.MappingNode:
		for _, pair := range n.Values {
			s.inPair(pair, t, path)
		}
	case *ast.SequenceNode:
		for i, one := range n.Values {
			s.in(one, elementOf(t), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func (s *keySearch) inPair(pair *ast.MappingValueNode, t reflect.Type, path string) {
	key := pair.Key.GetToken()
	if path != "" {
		path += "."
	}
	if p := key.Position; t != nil && t.Kind() == reflect.Struct && p.Line == s.at.Line && p.Column == s.at.Column {
		s.path, s.of = path, t
		return
	}
	s.in(pair.Value, valueOf(t, key.Value), path+key.Value)
}

// elementOf is the type of the items of a list; nil: it is none.
func elementOf(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}

// valueOf is the type of what is under the key; nil: there is no such key.
func valueOf(t reflect.Type, key string) reflect.Type {
	switch {
	case t == nil:
	case t.Kind() == reflect.Map:
		return t.Elem()
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			if f.Tag.Get("yaml") == key {
				return f.Type
			}
		}
	}
	return nil
}

func keysOf(t reflect.Type) (keys []string) {
	for f := range t.Fields() {
		keys = append(keys, f.Tag.Get("yaml"))
	}
	return keys
}
