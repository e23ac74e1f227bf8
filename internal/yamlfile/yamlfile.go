// Package yamlfile reads the files that operators write for the hub and its command line.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"isthmus.dev/isthmus/internal/text"
)

// Read reads a file into a struct: at most one document. Unknown and
// repeated keys and values of another type are refused, with line and column. No content
// of the file is repeated in the errors but keys.
func Read(data []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	err := decoder.Decode(&root)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return notYAML(err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return errors.New("it holds more than one document")
	}
	return readNode(root.Content[0], reflect.ValueOf(into).Elem(), "")
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

// notYAML names the line only: the words of the parser may repeat the file.
func notYAML(err error) error {
	if line := yamlLine.FindStringSubmatch(err.Error()); line != nil {
		return fmt.Errorf("[%s:1] this is not valid YAML", line[1])
	}
	return errors.New("[1:1] this is not valid YAML")
}

func wrongAt(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("[%d:%d] %s", n.Line, n.Column, fmt.Sprintf(format, args...))
}

// readNode reads what is at a path of keys. What is null stays as it is.
func readNode(n *yaml.Node, to reflect.Value, path string) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.ShortTag() == "!!null" {
		return nil
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return readNode(n, to.Elem(), path)
	case reflect.Struct:
		return readPairs(n, path, func(key *yaml.Node, value *yaml.Node, path string) error {
			field, err := fieldOf(key, to, path)
			if err != nil {
				return err
			}
			return readNode(value, field, path)
		})
	case reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		return readPairs(n, path, func(key *yaml.Node, value *yaml.Node, path string) error {
			one := reflect.New(to.Type().Elem()).Elem()
			err := readNode(value, one, path)
			to.SetMapIndex(reflect.ValueOf(key.Value).Convert(to.Type().Key()), one)
			return err
		})
	case reflect.Slice:
		return readItems(n, to, path)
	}
	return readScalar(n, to, path)
}

// readPairs reads a mapping.
func readPairs(n *yaml.Node, path string, read func(key, value *yaml.Node, path string) error) error {
	if n.Kind != yaml.MappingNode {
		return wrongAt(n, "%s must be a mapping", cmp.Or(path, "the file"))
	}
	if path != "" {
		path += "."
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			return wrongAt(key, "a key must be a word")
		case seen[key.Value]:
			return wrongAt(key, "the key %q is repeated", path+key.Value)
		}
		seen[key.Value] = true
		if err := read(key, n.Content[i+1], path+key.Value); err != nil {
			return err
		}
	}
	return nil
}

// fieldOf is the field of a struct for a key: its tag, else its name in small letters.
func fieldOf(key *yaml.Node, in reflect.Value, path string) (reflect.Value, error) {
	var known []string
	for f := range in.Type().Fields() {
		name := cmp.Or(f.Tag.Get("yaml"), strings.ToLower(f.Name))
		switch {
		case !f.IsExported(): // not of the file
		case name == key.Value:
			return in.FieldByIndex(f.Index), nil
		default:
			known = append(known, name)
		}
	}
	said := fmt.Sprintf("unknown key %q", path)
	if near := text.Nearest(key.Value, known); near != "" {
		return in, wrongAt(key, "%s; did you mean %q?", said, strings.TrimSuffix(path, key.Value)+near)
	}
	return in, wrongAt(key, "%s; the keys here are %s", said, strings.Join(known, ", "))
}

func readItems(n *yaml.Node, to reflect.Value, path string) error {
	if n.Kind != yaml.SequenceNode {
		return wrongAt(n, "%s must be a list", path)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if err := readNode(item, to.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// readScalar reads one value. A number in quotes is a number.
func readScalar(n *yaml.Node, to reflect.Value, path string) error {
	tag, what, ok := n.ShortTag(), "a string", n.Kind == yaml.ScalarNode
	switch {
	case to.CanInt(), to.CanUint():
		_, err := strconv.ParseInt(n.Value, 10, 64)
		what, ok = "a whole number", ok && (tag == "!!int" || tag == "!!str" && err == nil)
	case to.Kind() == reflect.Bool:
		what, ok = "true or false", ok && tag == "!!bool"
	}
	if plain := (yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}); !ok || to.Kind() != reflect.String &&
		plain.Decode(to.Addr().Interface()) != nil {
		return wrongAt(n, "%s must be %s", path, what)
	}
	if to.Kind() == reflect.String {
		to.SetString(n.Value)
	}
	return nil
}
