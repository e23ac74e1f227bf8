package schema

import (
	"maps"

	"github.com/pmezard/go-difflib/difflib"
)

// Diff shows what changes from one object to the other as a unified diff of YAML,
// without what only the store sets in metadata. Nil means that the object does not exist. If
// nothing else differs, the result is "".
func Diff(from, to map[string]any) string {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(from), B: lines(to), FromFile: "before",
		ToFile: "after", Context: 3,
	})
	if err != nil {
		return err.Error() // cannot be: it is written to memory
	}
	return text
}

// withoutServers is the object without what only the store sets in its metadata; its
// other parts are shared.
func withoutServers(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	shown, metadata := maps.Clone(object), maps.Clone(metadata)
	for _, field := range ofServer {
		delete(metadata, field)
	}
	shown["metadata"] = metadata
	return shown
}

func lines(object map[string]any) []string {
	if object == nil {
		return nil
	}
	text, err := YAML(withoutServers(object))
	if err != nil {
		return []string{err.Error() + "\n"}
	}
	all := difflib.SplitLines(string(text))
	return all[:len(all)-1] // SplitLines adds one
}
