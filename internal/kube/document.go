package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxKubeconfig is the largest kubeconfig in bytes (B-K12).
const MaxKubeconfig = 256 << 10

const maxDepth = 12

var yamlLine = regexp.MustCompile(`line (\d+)`)

// document reads one YAML document and checks its text and its shape. It returns nil when there is no tree to look at.
func document(data []byte, found *findings) *yaml.Node {
	if !plainText(data, found) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil {
		syntax(err, found)
		return nil
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		found.add(CodeDocuments, "", "the file holds more than one YAML document; keep one")
		return nil
	}
	if len(root.Content) != 1 {
		found.add(CodeSyntax, "", "the file holds no YAML document")
		return nil
	}
	shape(root.Content[0], 1, found)
	return root.Content[0]
}

func plainText(data []byte, found *findings) bool {
	switch {
	case len(data) > MaxKubeconfig:
		found.add(CodeTooLarge, "", fmt.Sprintf("the file has more than %d bytes; kubectl config view --raw --minify --flatten makes a small one",
			MaxKubeconfig))
	case len(bytes.TrimSpace(data)) == 0:
		found.add(CodeMissing, "", "the file is empty")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) || bytes.HasPrefix(data, []byte("\xff\xfe")) ||
		bytes.HasPrefix(data, []byte("\xfe\xff")):
		found.add(CodeEncoding, "", "the file starts with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(data) || bytes.ContainsFunc(data, control):
		found.add(CodeEncoding, "", "the file holds bytes that are not text; a kubeconfig is UTF-8 text")
	default:
		return !tabs(data, found)
	}
	return false
}

func control(r rune) bool {
	return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfeff
}

func tabs(data []byte, found *findings) bool {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if bytes.ContainsRune(indent, '\t') {
			found.add(CodeTab, fmt.Sprintf("line %d", number), "YAML is indented by spaces; replace the tab")
			return true
		}
	}
	return false
}

// syntax reports the line only: the parser's own words may quote the file.
func syntax(err error, found *findings) {
	switch line := yamlLine.FindStringSubmatch(err.Error()); {
	case strings.Contains(err.Error(), "unknown anchor"):
		found.add(CodeAlias, "", "YAML aliases are not accepted; write the value out")
	case strings.Contains(err.Error(), "exceeded max depth"):
		found.add(CodeDepth, "", fmt.Sprintf("the document nests deeper than %d levels", maxDepth))
	case errors.Is(err, io.EOF):
		found.add(CodeMissing, "", "the file is empty")
	case line == nil:
		found.add(CodeSyntax, "", "the file is not valid YAML")
	default:
		found.add(CodeSyntax, "line "+line[1], "the file is not valid YAML there")
	}
}

// shape refuses what makes YAML ambiguous: anchors, aliases, repeated keys, keys that are not plain words, deep nesting.
func shape(node *yaml.Node, depth int, found *findings) {
	field := fmt.Sprintf("line %d", node.Line)
	if depth > maxDepth {
		found.add(CodeDepth, field, fmt.Sprintf("the document nests deeper than %d levels", maxDepth))
		return
	}
	if node.Anchor != "" || node.Kind == yaml.AliasNode {
		found.add(CodeAlias, field, "YAML anchors and aliases are not accepted; write the value out")
		return
	}
	if node.Kind == yaml.MappingNode {
		repeatedKeys(node, found)
	}
	for _, child := range node.Content {
		shape(child, depth+1, found)
	}
}

func repeatedKeys(node *yaml.Node, found *findings) {
	seen := make(map[string]bool, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		field := fmt.Sprintf("line %d", key.Line)
		switch {
		case key.Kind != yaml.ScalarNode:
			found.add(CodeType, field, "a key must be a word")
		case seen[key.Value]:
			found.add(CodeDuplicate, field, "the key "+quoteKey(key.Value)+" occurs twice")
		}
		seen[key.Value] = true
	}
}

var plainKey = regexp.MustCompile(`\A[A-Za-z][A-Za-z0-9-]{0,40}\z`)

// quoteKey repeats a key only when it looks like the name of a field.
func quoteKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return "(not a field name)"
}
