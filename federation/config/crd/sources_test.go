package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

// TestG76EachFieldOfASourceHasAnEffect: another value of any field of sources has something else read of a
// cluster, or for other proxies, or has its status written.
func TestG76EachFieldOfASourceHasAnEffect(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[federation.Kind]schema.Kind{}
	for _, k := range set.Kinds() {
		kinds[k.Kind] = k
	}
	source := map[string]any{
		"cluster": "c1", "namespaces": []string{"shop"}, "kinds": []string{"VirtualService.networking.istio.io"},
		"scope": "CLUSTER", "status": false,
	}
	others := map[string]any{
		"cluster": "c2", "namespaces": []string{"shop", "store"}, "kinds": []string{"Sidecar.networking.istio.io"},
		"scope": "MESH", "status": true,
	}
	before := wantedBy(t, source, kinds)
	for _, field := range fieldsOfSources(t, set) {
		other, has := others[field]
		changed := maps.Clone(source)
		changed[field] = other
		if !has || wantedBy(t, changed, kinds) == before {
			t.Errorf("another value of sources.%s changes nothing; with the first there is %s", field, before)
		}
	}
}

func fieldsOfSources(t *testing.T, set *schema.Set) (names []string) {
	t.Helper()
	fields, err := set.Fields(federation.MeshSettingsKind)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(fields, func(f schema.Field) bool { return f.Name == "sources" })
	if at < 0 || len(fields[at].Below) == 0 {
		t.Fatal("there are no sources")
	}
	for _, f := range fields[at].Below {
		names = append(names, f.Name)
	}
	return names
}

// wantedBy is what is read because of the source.
func wantedBy(t *testing.T, source map[string]any, kinds map[federation.Kind]schema.Kind) string {
	t.Helper()
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "isthmus.dev/v1", "kind": "MeshSettings", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"sources": []any{source}},
	})
	if err != nil {
		t.Fatal(err)
	}
	settings := &config.Object{Key: federation.MeshSettingsKey, APIVersion: "isthmus.dev/v1", Manifest: manifest}
	state, _ := config.NewState(config.Options{Hub: "hub"}).Next([]config.Event{{New: settings}}, 1)
	var p plan
	if !p.read(state, federation.Empty(), &Options{}, kinds) {
		t.Fatalf("%s is not read", manifest)
	}
	var all []string
	for id, w := range p.wanted {
		for at := range w.places() {
			all = append(all, fmt.Sprintf("%v of %s for %q", at, id, w.scope))
		}
		all = append(all, fmt.Sprintf("status of %s: %v", id, w.status))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
