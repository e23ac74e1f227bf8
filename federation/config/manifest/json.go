package manifest

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readJSON reads a chunk that is one or more JSON values, and reports whether it
// is. Values with problems are excluded.
func (p *parser) readJSON(c document) bool {
	if !isJSON(c.text) {
		return false
	}
	r := &jsonReader{parser: p, at: spot{c.line, 1}, text: c.text, tokens: json.NewDecoder(strings.NewReader(c.text))}
	r.tokens.UseNumber()
	for r.tokens.More() {
		p.document = p.count
		p.count++
		before := len(p.problems)
		if n := r.value("", 1); len(p.problems) == before {
			p.add(n, nil) // others may be in the same chunk
		}
	}
	return true
}

func isJSON(text string) bool {
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return true
		} else if err != nil {
			return false
		}
	}
}

// jsonReader turns the tokens of valid JSON into values.
type jsonReader struct {
	*parser
	text   string
	tokens *json.Decoder
	offset int  // up to which at has been moved
	at     spot // of offset
	deep   bool // said already
}

// next returns the next token and where it begins.
func (r *jsonReader) next() (json.Token, spot) {
	start := int(r.tokens.InputOffset())
	for start < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[start]) >= 0 {
		start++
	}
	for i := r.offset; i < start; i++ {
		switch b := r.text[i]; {
		case b == '\n':
			r.at = spot{r.at.line + 1, 1}
		case utf8.RuneStart(b):
			r.at.column++
		}
	}
	r.offset = start
	token, err := r.tokens.Token()
	if err != nil {
		return nil, r.at // cannot be: the text is valid
	}
	return token, r.at
}

func (r *jsonReader) value(path string, depth int) node {
	token, at := r.next()
	result := node{place: place{spot: at}}
	if depth > r.limits.Depth {
		r.skip(token, at, path)
		return result
	}
	var refused refusal
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			result.value = r.object(path, depth, &result.place)
		} else {
			result.value = r.list(path, depth, &result.place)
		}
	case json.Number:
		if strings.ContainsAny(t.String(), ".eE") {
			result.value, refused = float(t.String())
		} else {
			result.value, refused = integer(t.String())
		}
	case string:
		result.value, refused = t, checkString(t)
	default:
		result.value = t
	}
	if refused.code != "" {
		r.report(at, path, refused.code, "%s", refused.message)
	}
	return result
}

// skip passes over a value that is nested too deep.
func (r *jsonReader) skip(token json.Token, at spot, path string) {
	if !r.deep {
		r.report(at, path, TooDeep, "values are nested deeper than the %d levels allowed", r.limits.Depth)
	}
	r.deep = true
	for open := 0; ; token, _ = r.next() {
		switch token {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		if open == 0 {
			return
		}
	}
}

func (r *jsonReader) list(path string, depth int, at *place) []any {
	list := []any{}
	for r.tokens.More() {
		child := r.value(path+"["+strconv.Itoa(len(list))+"]", depth+1)
		list, at.items = append(list, child.value), append(at.items, child.place)
	}
	r.next()
	return list
}

func (r *jsonReader) object(path string, depth int, at *place) map[string]any {
	object := map[string]any{}
	for r.tokens.More() {
		token, keyAt := r.next()
		key, _ := token.(string)
		field := join(path, key)
		if refused := checkKey(key); refused.code != "" {
			r.report(keyAt, path, refused.code, "%s", refused.message)
		}
		child := r.value(field, depth+1)
		if twice := at.field(key); twice >= 0 {
			r.report(keyAt, field, DuplicateKey, "the key %s is already in line %d: keep one", quote(key), at.fields[twice].line)
			continue
		}
		child.place.spot, child.place.key = keyAt, key
		object[key] = child.value
		at.add(child.place)
	}
	r.next()
	return object
}
