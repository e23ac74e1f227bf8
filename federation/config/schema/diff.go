package schema

import (
	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Diff shows what changes from one object to the other as a unified diff of YAML
// without managedFields. Nil is no object; equal objects give "".
func Diff(from, to map[string]any) string {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(from), B: lines(to), FromFile: "before", ToFile: "after", Context: 3})
	if err != nil {
		return err.Error() // cannot be: it is written to memory
	}
	return text
}

func lines(object map[string]any) []string {
	if object == nil {
		return nil
	}
	object = runtime.DeepCopyJSON(object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return []string{err.Error() + "\n"}
	}
	all := difflib.SplitLines(string(text))
	return all[:len(all)-1] // SplitLines adds one
}
