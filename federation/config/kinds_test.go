package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestWhatIsAdmittedCanBeDecoded decodes every kind that the schemas know, and
// every valid manifest of their corpus in its storage version.
func TestWhatIsAdmittedCanBeDecoded(t *testing.T) {
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range set.Kinds() {
		o := object(t, 1, "apiVersion: "+kind.APIVersion()+"\nkind: "+kind.Name+"\nmetadata: {name: empty, namespace: shop}")
		w := newWorld()
		w.take([]config.Event{{New: o}})
		if _, ok := w.state.Decoded(o.Key); !ok {
			t.Errorf("%s: %v", kind.Kind, w.problems())
		}
	}
	files, err := filepath.Glob("schema/testdata/corpus/valid/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d manifests, %v", len(files), err)
	}
	for _, file := range files {
		o := admitted(t, set, file)
		w := newWorld()
		w.take([]config.Event{{New: o}})
		if _, ok := w.state.Decoded(o.Key); !ok {
			t.Errorf("%s: %v", file, w.problems())
		}
	}
}

func admitted(t *testing.T, set *schema.Set, file string) *config.Object {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	stored, problems := set.Admit(manifest, nil)
	if stored == nil {
		t.Fatalf("%s is not admitted: %v", file, problems)
	}
	if data, err = json.Marshal(stored); err != nil {
		t.Fatal(err)
	}
	return object(t, 1, string(data))
}
