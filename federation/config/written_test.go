package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

// TestG73AnObjectMeansItsManifest: an object that a source admitted, whose spec is not decoded
// again, means what its manifest means to a hub that has nothing but that.
func TestG73AnObjectMeansItsManifest(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("schema/testdata/corpus/valid/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d manifests, %v", len(files), err)
	}
	compared := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var wanted map[string]any
		if err := yaml.Unmarshal(data, &wanted); err != nil {
			t.Fatal(err)
		}
		metadata := wanted["metadata"].(map[string]any)
		metadata["annotations"] = map[string]any{"istio.io/dry-run": "true", "text": "<&>\u2028"}
		a, problems := kind.Schema{Set: set}.Admit(wanted)
		if len(problems) > 0 {
			continue // a rule of its kind refuses it
		}
		a.Object["metadata"].(map[string]any)["creationTimestamp"] = "2026-01-01T00:00:00Z"
		compared++
		meansItsManifest(t, a)
	}
	if compared < 20 {
		t.Errorf("only %d manifests are admitted", compared)
	}
}

func meansItsManifest(t *testing.T, a schema.Admitted) {
	t.Helper()
	o, err := config.NewObject(kind.KeyOf(a.Object), a.Object["apiVersion"].(string), a)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(a.Object); err != nil || !bytes.Equal(text, o.Manifest) {
		t.Errorf("%v\n%s is written, not\n%s", err, o.Manifest, text)
	}
	alone := &config.Object{Key: o.Key, APIVersion: o.APIVersion, Manifest: o.Manifest}
	for turn := range 2 { // the second has the manifest alone, too
		shown, edit := told(t, o)
		want, wantEdit := told(t, alone)
		options := cmp.Options{protocmp.Transform(), cmpopts.IgnoreFields(federation.Object{}, "Decode"), cmpopts.EquateComparable()}
		if diff := cmp.Diff(want, shown, options); diff != "" {
			t.Errorf("%s, turn %d: %s", o.Key, turn, diff)
		}
		if diff := cmp.Diff(string(renderEdit(t, wantEdit, nil)), string(renderEdit(t, edit, nil))); diff != "" {
			t.Errorf("%s, turn %d: %s", o.Key, turn, diff)
		}
	}
}

// told is what an object tells a mesh that has nothing else.
func told(t *testing.T, o *config.Object) (*federation.Object, federation.Edit) {
	t.Helper()
	state, edit := config.NewState(config.Options{Hub: "hub"}).Next([]config.Event{{New: o}}, 1)
	shown, _ := state.Decoded(o.Key)
	return shown, edit
}
