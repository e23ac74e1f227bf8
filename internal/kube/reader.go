package kube

import (
	"encoding/base64"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader turns YAML nodes into values and collects what is wrong with them.
type reader struct {
	found   *findings
	ignored []string
}

// mapping returns the allowed fields of a mapping and reports the others. A null field counts as absent.
func (r *reader) mapping(node *yaml.Node, path, place string) map[string]*yaml.Node {
	fields := map[string]*yaml.Node{}
	if node == nil {
		return fields
	}
	if node.Kind != yaml.MappingNode {
		r.found.add(CodeType, path, "must be a mapping")
		return fields
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i].Value, node.Content[i+1]
		field := join(path, quoteKey(name))
		switch rule := judge(place, name); {
		case rule.code != "":
			r.found.add(rule.code, field, rule.advice)
		case isNull(value):
		default:
			if rule.ignored {
				r.ignored = append(r.ignored, field)
			}
			fields[name] = value
		}
	}
	return fields
}

// entries reads a list of {name, PLACE}.
func (r *reader) entries(node *yaml.Node, path, place string) map[string]entry {
	entries := map[string]entry{}
	if node == nil {
		return entries
	}
	if node.Kind != yaml.SequenceNode {
		r.found.add(CodeType, path, "must be a list")
		return entries
	}
	for i, item := range node.Content {
		r.entry(item, fmt.Sprintf("%s[%d]", path, i), place, entries)
	}
	return entries
}

func (r *reader) entry(node *yaml.Node, path, place string, into map[string]entry) {
	if node.Kind != yaml.MappingNode {
		r.found.add(CodeType, path, "must be a mapping of name and "+place)
		return
	}
	var name string
	read := entry{path: path}
	for i := 0; i+1 < len(node.Content); i += 2 {
		switch key, value := node.Content[i].Value, node.Content[i+1]; key {
		case "name":
			name = r.text(value, path+".name")
		case place:
			if isNull(value) {
				value = nil
			}
			before := len(*r.found)
			read.fields = r.mapping(value, path+"."+place, place)
			read.refused = len(*r.found) > before
		default:
			r.found.add(CodeUnknownField, join(path, quoteKey(key)), adviceMinify)
		}
	}
	if name == "" {
		r.found.add(CodeMissing, path+".name", "every entry needs a name")
		return
	}
	if _, twice := into[name]; twice {
		r.found.add(CodeDuplicate, path+".name", "an earlier entry has the same name")
	}
	into[name] = read
}

// text returns a string; a number or truth value must be quoted to be one.
func (r *reader) text(node *yaml.Node, path string) string {
	if node == nil || isNull(node) {
		return ""
	}
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		r.found.add(CodeType, path, "must be a string; put it in quotes")
		return ""
	}
	return node.Value
}

func (r *reader) truth(node *yaml.Node, path string) bool {
	if node == nil {
		return false
	}
	if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
		r.found.add(CodeType, path, "must be true or false")
		return false
	}
	var value bool
	return node.Decode(&value) != nil || value
}

func (r *reader) constant(node *yaml.Node, path, want string) {
	if got := r.text(node, path); got != "" && got != want {
		r.found.add(CodeType, path, "must be "+want)
	}
}

func (r *reader) required(from entry, place, name string) string {
	path := join(from.path, place+"."+name)
	if from.fields[name] == nil {
		r.found.add(CodeMissing, path, "is needed")
		return ""
	}
	value := r.text(from.fields[name], path)
	if value == "" {
		r.found.add(CodeMissing, path, "must not be empty")
	}
	return value
}

// base64 returns the decoded bytes, or nil when the field is absent or wrong.
func (r *reader) base64(from entry, place, name string) []byte {
	path := join(from.path, place+"."+name)
	node := from.fields[name]
	if node == nil {
		return nil
	}
	data, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(r.text(node, path)))
	if err != nil || len(data) == 0 {
		r.found.add(CodeBase64, path, "must be PEM in standard base64")
		return nil
	}
	return data
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
