package manifest

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads the one document of a chunk.
func (p *parser) readYAML(c document, t *tree) (node, bool) {
	if errors.Is(t.err, io.EOF) || t.err == nil && len(t.root.Content) == 0 {
		p.count--
		return node{}, false
	}
	if t.err != nil {
		p.syntax(c, t.err)
		return node{}, false
	}
	before := len(p.problems)
	r := &yamlReader{parser: p, chunk: c}
	n := r.read(t.root.Content[0], "", 1)
	r.indentation(t.root.Content[0])
	return n, len(p.problems) == before
}

// tree is what a chunk holds as YAML, or why it is none.
type tree struct {
	root yaml.Node
	err  error
}

func decode(text string) *tree {
	t := &tree{}
	defer func() {
		if recover() != nil {
			t.err = errors.New("it is not YAML that can be read")
		}
	}()
	t.err = yaml.NewDecoder(strings.NewReader(text)).Decode(&t.root)
	return t
}

// tabIn returns the index of a tab in the indentation of a line, or -1.
func tabIn(line string) int {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.IndexByte(indent, '\t')
}

// yamlReader turns the nodes of one document into values.
type yamlReader struct {
	*parser
	chunk document
	deep  bool // said already
}

func (r *yamlReader) at(n *yaml.Node) spot { return spot{n.Line + r.chunk.line - 1, n.Column} }

func (r *yamlReader) read(n *yaml.Node, path string, depth int) node {
	at := r.at(n)
	result := node{place: place{spot: at}}
	if depth > r.limits.Depth {
		if !r.deep {
			r.report(at, path, TooDeep, "values are nested deeper than the %d levels allowed", r.limits.Depth)
		}
		r.deep = true
		return result
	}
	if r.refuseDecoration(n, path) {
		return result
	}
	switch n.Kind {
	case yaml.MappingNode:
		result.value = r.object(n, path, depth, &result.place)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		result.place.items = make([]place, len(n.Content))
		for i, item := range n.Content {
			child := r.read(item, path+"["+strconv.Itoa(i)+"]", depth+1)
			list[i], result.place.items[i] = child.value, child.place
		}
		result.value = list
	case yaml.ScalarNode:
		result.value = r.scalar(n, path)
	}
	return result
}

// refuseDecoration refuses anchors, aliases and tags.
func (r *yamlReader) refuseDecoration(n *yaml.Node, path string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.report(r.at(n), path, Anchor, "aliases are not read: write the value of *%s itself", shorten(n.Value))
	case n.Anchor != "":
		r.report(r.at(n), path, Anchor, "anchors are not read: remove &%s and write its value wherever it is used", shorten(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0 || n.Kind == yaml.ScalarNode && n.Tag != "" && !strings.HasPrefix(n.Tag, "!!"):
		r.report(r.at(n), path, CustomTag, "tags are not read: remove %s, and put strings in quotes", shorten(n.Tag))
	default:
		return false
	}
	return true
}

const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func (r *yamlReader) scalar(n *yaml.Node, path string) any {
	value, refused := any(n.Value), refusal{}
	if n.Style&quoted == 0 {
		value, refused = plain(n.Value)
	}
	if text, ok := value.(string); ok && refused.code == "" {
		refused = checkString(text)
	}
	if refused.code != "" {
		r.report(r.at(n), path, refused.code, "%s", refused.message)
		return nil
	}
	return value
}

func (r *yamlReader) object(n *yaml.Node, path string, depth int, at *place) map[string]any {
	object := make(map[string]any, len(n.Content)/2)
	at.fields = make([]place, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := r.key(n.Content[i], path)
		if !ok {
			continue
		}
		field := join(path, key)
		child := r.read(n.Content[i+1], field, depth+1)
		if twice := at.field(key); twice >= 0 {
			r.report(r.at(n.Content[i]), field, DuplicateKey, "the key %s is already in line %d: keep one", quote(key), at.fields[twice].line)
			continue
		}
		child.place.spot, child.place.key = r.at(n.Content[i]), key
		object[key] = child.value
		at.add(child.place)
	}
	return object
}

// key reads the key of a field; decimal numbers are taken as the string that
// they are written as.
func (r *yamlReader) key(n *yaml.Node, path string) (string, bool) {
	if r.refuseDecoration(n, path) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode {
		r.report(r.at(n), path, BadKey, "a key is a string, not a list or an object")
		return "", false
	}
	if refused := checkKey(n.Value); refused.code != "" {
		r.report(r.at(n), path, refused.code, "%s", refused.message)
		return "", false
	}
	if n.Style&quoted != 0 {
		return n.Value, true
	}
	if n.Value == "<<" {
		r.report(r.at(n), path, MergeKey, "merge keys are not read: write the fields themselves")
		return "", false
	}
	value, refused := plain(n.Value)
	switch value.(type) {
	case string, int64:
		return n.Value, true
	}
	if refused.code == "" {
		refused.message = quote(n.Value) + " is not a string: write it in quotes"
	}
	r.report(r.at(n), path, BadKey, "%s", refused.message)
	return "", false
}

// indentation refuses tabs with which a plain scalar goes on over a line end:
// what looks like a nested value is then part of a string.
func (r *yamlReader) indentation(root *yaml.Node) {
	lines := strings.Split(r.chunk.text, "\n")
	var last *yaml.Node
	check := func(until int) {
		if last == nil || last.Kind != yaml.ScalarNode || last.Style&quoted != 0 {
			return
		}
		for l := last.Line + 1; l < until && l <= len(lines); l++ {
			text := lines[l-1]
			if i := tabIn(text); i >= 0 && !strings.HasPrefix(strings.TrimLeft(text, " \t"), "#") && strings.TrimSpace(text) != "" {
				r.report(spot{r.chunk.line + l - 1, i + 1}, "", Tab, "a tab is not indentation: write spaces")
			}
		}
	}
	walk(root, func(n *yaml.Node) { check(n.Line); last = n })
	check(len(lines) + 1)
}

// walk visits the nodes in the order of the text.
func walk(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, child := range n.Content {
		walk(child, visit)
	}
}

func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]/ "):
		return fmt.Sprintf("%s[%s]", path, shorten(key))
	case path == "":
		return shorten(key)
	}
	return path + "." + shorten(key)
}
