package schema_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation/config/schema"
)

// TestPropertyObjectsAreWrittenAsYAML: an object is written as the library of Kubernetes writes it
// where that keeps what the object says; what is written is read as the same object.
func TestPropertyObjectsAreWrittenAsYAML(t *testing.T) {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("y \"'\\:#-{}[]<>&*!|%@`\n\t\u007f\u0085\ufeff\uffff"))))
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{"kind": "Test"}
		for _, name := range rapid.SliceOfN(text, 0, 4).Draw(t, "names") {
			object["x"+name] = map[string]any{"texts": []any{text.Draw(t, "text"), text.Draw(t, "text")}, "is": rapid.Bool().Draw(t, "is")}
		}
		written, err := schema.YAML(object)
		if err != nil {
			t.Fatal(err)
		}
		isSame := func(text []byte) bool {
			var read map[string]any
			return yaml.Unmarshal(text, &read) == nil && reflect.DeepEqual(read, object)
		}
		if !isSame(written) {
			t.Fatalf("%q is written as %q", object, written)
		}
		if of, err := yaml.Marshal(object); err == nil && isSame(of) && string(of) != string(written) {
			t.Fatalf("Kubernetes writes\n%s\nand the hub\n%s", of, written)
		}
	})
}

// TestControlCharactersAreWritten, which is why the hub does not write with the library of Kubernetes.
func TestControlCharactersAreWritten(t *testing.T) {
	object := map[string]any{"a": "\u007f"}
	if _, err := yaml.Marshal(object); err == nil {
		t.Error("the library of Kubernetes writes them, too: use it")
	}
	if written, err := schema.YAML(object); err != nil || string(written) != "a: \"\\x7F\"\n" {
		t.Errorf("it is written as %q (%v)", written, err)
	}
}
