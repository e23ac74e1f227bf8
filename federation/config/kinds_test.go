package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
	networking "istio.io/api/networking/v1"
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
		w := newFixture()
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
		w := newFixture()
		w.take([]config.Event{{New: o}})
		shown, ok := w.state.Decoded(o.Key)
		if !ok {
			t.Errorf("%s: %v", file, w.problems())
			continue
		}
		sameAsModule(t, o, shown.Spec)
	}
}

// TestDurationsAreReadAsTheModuleDoes has values that protobuf's own JSON
// refuses and the kind's module takes.
func TestDurationsAreReadAsTheModuleDoes(t *testing.T) {
	o := object(t, 1, `{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop},
  spec: {hosts: [web], http: [{timeout: 3m, later: than this hub, route: [{destination: {host: web}, weight: 7}]}]}}`)
	w := newFixture()
	w.take([]config.Event{{New: o}})
	shown, ok := w.state.Decoded(o.Key)
	if !ok {
		t.Fatal(w.problems())
	}
	web := shown.Spec.(*networking.VirtualService)
	if got := web.GetHttp()[0]; got.GetTimeout().AsDuration() != 3*time.Minute || got.GetRoute()[0].GetWeight() != 7 ||
		len(web.GetHosts()) != 1 {
		t.Errorf("read as %v", web)
	}
	sameAsModule(t, o, shown.Spec)
}

// sameAsModule compares a spec with what the Go module of its kind reads.
func sameAsModule(t *testing.T, o *config.Object, got any) {
	t.Helper()
	message, ok := got.(proto.Message)
	if !ok {
		return // it is read by no other
	}
	var manifest struct{ Spec json.RawMessage }
	if err := json.Unmarshal(o.Manifest, &manifest); err != nil {
		t.Fatal(err)
	}
	want := message.ProtoReflect().New().Interface()
	if len(manifest.Spec) > 0 {
		if err := json.Unmarshal(manifest.Spec, want); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, message, protocmp.Transform()); diff != "" {
		t.Errorf("%s is read otherwise than by its module (-module +hub):\n%s", o.Key, diff)
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
	data, err = json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, 1, string(data))
}
