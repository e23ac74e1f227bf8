package envoy_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/federationtest"
)

// TestSupportedSettingsHaveAnEffect takes each field that MeshSettings and a Network are
// listed to support out of an object, and expects that some proxy gets other bytes. What
// other settings replace is tried in distribute.txtar.
func TestSupportedSettingsHaveAnEffect(t *testing.T) {
	files := map[string]string{"localityLoadBalancing.distribute": "testdata/supported/distribute.txtar"}
	for key, fields := range map[federation.ObjectKey][]string{
		federation.MeshSettingsKey: kind.MeshSettingsFields,
		{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: "n2"}: kind.NetworkFields,
	} {
		for _, path := range fields {
			s := federationtest.Load(t, cmp.Or(files[path], "testdata/supported/settings.txtar"))
			whole := resourcesOf(t, s, s.Snapshot())
			o, found := s.Snapshot().Object(key)
			if !found {
				t.Fatalf("the scenario has no %s", key)
			}
			w := world{snapshot: s.Snapshot()}
			w.configure(withoutField(t, o, path))
			if maps.Equal(whole, resourcesOf(t, s, w.snapshot)) {
				t.Errorf("%s of %s is listed as supported, but no proxy gets other bytes without it", path, key.Kind)
			}
		}
	}
}

// withoutField is the object without a field, which it must have.
func withoutField(t *testing.T, o *federation.Object, path string) *federation.Object {
	t.Helper()
	data, err := json.Marshal(o.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(data, &spec); err != nil {
		t.Fatal(err)
	}
	holder, last := spec, path
	for {
		name, rest, inner := strings.Cut(last, ".")
		if !inner {
			break
		}
		holder, _ = holder[name].(map[string]any)
		last = rest
	}
	if _, has := holder[last]; !has {
		t.Errorf("the %s of testdata/supported/settings.txtar has no %s", o.Key.Kind, path)
	}
	delete(holder, last)
	if data, err = json.Marshal(spec); err != nil {
		t.Fatal(err)
	}
	tried := *o
	if tried.Spec, err = kind.Decode(o.Key.Of(), data); err != nil {
		t.Fatal(err)
	}
	tried.Digest = string(data)
	kind.Index(kind.Decoded{Object: &tried})
	return &tried
}

// resourcesOf are what the proxies of the scenario get from a snapshot.
func resourcesOf(t *testing.T, s *federationtest.Scenario, of *federation.Snapshot) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, proxy := range s.Proxies {
		for _, typ := range allTypes {
			for _, r := range build(t, typ, nodeOf(t, proxy), of) {
				got[fmt.Sprint(proxy.Name, typ, r.name)] = string(marshal(t, r.message))
			}
		}
	}
	return got
}
