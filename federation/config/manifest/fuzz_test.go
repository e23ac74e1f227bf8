package manifest_test

import (
	"math"
	"testing"

	"isthmus.dev/isthmus/federation/config/manifest"
)

// FuzzManifest: whatever comes in, Parse ends, and gives JSON values or a
// problem with a place in the file.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		gateway, "", "a: &x [*x]", "{\"a\": [1, 2.5e3, \"\\u00e9\"]}{}", "kind: List\nitems: [{a: 1}]", "kind: List\nitems: []", "a:\n\t- b",
		"a: |\n  x\n---\n--- b: 1\n...",
		"? a\n: b", "a: !!t b", "%YAML 1.2\n---\n{}", "\uFEFFa: 0777",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, problems := manifest.Parse("f", data, manifest.Limits{})
		if len(documents)+len(problems) == 0 {
			t.Fatal("neither a document nor a problem")
		}
		for _, d := range documents {
			jsonOnly(t, d.Value)
			if line, column := d.Position("a.b[0]"); line < 1 || column < 1 {
				t.Fatalf("place %d:%d", line, column)
			}
		}
		for _, p := range problems {
			if p.Message == "" || p.Code == "" || p.Document >= 0 && (p.Line < 1 || p.Column < 1) {
				t.Fatalf("problem %+v", p)
			}
		}
	})
}

func jsonOnly(t *testing.T, value any) {
	switch v := value.(type) {
	case nil, bool, string, int64:
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("%v is not a JSON number", v)
		}
	case []any:
		for _, item := range v {
			jsonOnly(t, item)
		}
	case map[string]any:
		for _, field := range v {
			jsonOnly(t, field)
		}
	default:
		t.Fatalf("%T is not a JSON value", v)
	}
}
