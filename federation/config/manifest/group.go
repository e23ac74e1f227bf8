package manifest

import (
	"errors"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"isthmus.dev/isthmus/internal/parallel"
)

// groupSize is how many chunks one decoder reads: it needs several times the text of a usual
// chunk for itself.
const groupSize = 16

// decodeAll decodes the chunks that can be nothing but YAML.
func decodeAll(chunks []document) []*tree {
	trees := make([]*tree, len(chunks))
	var yamls []int
	for i, c := range chunks {
		text := c.text[c.marker:]
		if first := significant(text); first >= 0 && strings.IndexByte("%{[", text[first]) < 0 {
			yamls = append(yamls, i)
		}
	}
	groups := slices.Collect(slices.Chunk(yamls, groupSize))
	parallel.Each(len(groups), func(g int) {
		decodeGroup(chunks, trees, groups[g])
	})
	return trees
}

// decodeGroup decodes the chunks of those numbers with one decoder, or each for itself if they
// are not what they seem together.
func decodeGroup(chunks []document, trees []*tree, numbers []int) {
	texts := make([]string, len(numbers))
	for i, number := range numbers {
		texts[i] = chunks[number].blanked().text
	}
	together := decodeTogether(texts)
	for i, number := range numbers {
		if together != nil {
			trees[number] = &together[i]
		} else {
			trees[number] = decode(texts[i])
		}
	}
}

const documentStart = "---\n"

// decodeTogether decodes texts that are objects, each as if it stood alone. It returns nil if
// one is none, or could be read otherwise between others than alone.
func decodeTogether(texts []string) (trees []tree) {
	defer func() {
		if recover() != nil {
			trees = nil
		}
	}()
	var all strings.Builder
	for i, text := range texts {
		if strings.Contains(text, byteOrderMark) || i < len(texts)-1 && !strings.HasSuffix(text, "\n") {
			return nil
		}
		all.WriteString(documentStart)
		all.WriteString(text)
	}
	decoder := yaml.NewDecoder(strings.NewReader(all.String()))
	trees = make([]tree, len(texts))
	start := 1
	for i, text := range texts {
		root := &trees[i].root
		if err := decoder.Decode(root); err != nil || root.Line != start || len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
			return nil
		}
		if !moveUp(root.Content[0], start) {
			return nil
		}
		start += 1 + strings.Count(text, "\n")
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil // a text is more than one
	}
	return trees
}

// moveUp counts lines as if a text stood alone. It reports whether the text has no aliases,
// which could be of anchors in other texts.
func moveUp(n *yaml.Node, lines int) bool {
	n.Line -= lines
	for _, child := range n.Content {
		if !moveUp(child, lines) {
			return false
		}
	}
	return n.Kind != yaml.AliasNode
}
