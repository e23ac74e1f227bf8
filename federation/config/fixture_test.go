package config_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"sigs.k8s.io/yaml"
)

// object reads a manifest as a store would give it.
func object(t testing.TB, revision int64, manifest string) *config.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
	}
	if err := json.Unmarshal(data, &head); err != nil {
		t.Fatal(err)
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	return &config.Object{
		Key:        federation.ObjectKey{Group: group, Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name},
		APIVersion: head.APIVersion, Revision: revision, Manifest: data,
	}
}

// istio is the manifest of an object of Istio's in namespace ns.
func istio(kind, ns, name, spec string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: %s\nmetadata: {name: %q, namespace: %s, creationTimestamp: \"2026-01-01T00:00:00Z\"}\nspec: %s", kind, name, ns, spec)
}

func entry(name, spec string) string    { return istio("ServiceEntry", "shop", name, spec) }
func workload(name, spec string) string { return istio("WorkloadEntry", "shop", name, spec) }

// fixture is a configuration, and the mesh that follows from it.
type fixture struct {
	state    *config.State
	mesh     *federation.Snapshot
	revision int64
}

func newFixture() *fixture {
	w := &fixture{state: config.NewState(config.Options{Hub: "hub"}), mesh: federation.Empty()}
	w.take(nil)
	return w
}

func (w *fixture) take(events []config.Event) federation.ChangeSet {
	w.revision++
	state, edit := w.state.Next(events, w.revision)
	before := w.mesh.Version()
	w.state = state
	w.mesh, _ = federation.Next(w.mesh, edit)
	return w.mesh.ChangesSince(before)
}

func (w *fixture) apply(t testing.TB, manifests ...string) federation.ChangeSet {
	t.Helper()
	var events []config.Event
	for _, m := range manifests {
		now := object(t, w.revision+1, m)
		old, _ := w.state.Object(now.Key)
		events = append(events, config.Event{Old: old, New: now})
	}
	return w.take(events)
}

func (w *fixture) delete(kind, name string) federation.ChangeSet {
	old, _ := w.state.Object(federation.ObjectKey{Group: "networking.istio.io", Kind: kind, Namespace: "shop", Name: name})
	return w.take([]config.Event{{Old: old}})
}

func shop(host string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: "shop"}
}

// endpoints are the addresses of a service in namespace shop, sorted.
func (w *fixture) endpoints(host string) []string {
	svc, ok := w.mesh.Service(shop(host))
	if !ok {
		return []string{"no service"}
	}
	found := []string{}
	for _, s := range svc.Endpoints {
		for _, e := range s.Endpoints {
			found = append(found, e.Address.String())
		}
	}
	slices.Sort(found)
	return found
}

func (w *fixture) has(t testing.TB, host string, want ...string) {
	t.Helper()
	if got := w.endpoints(host); !slices.Equal(got, want) {
		t.Errorf("%s has the endpoints %v, want %v", host, got, want)
	}
}

// changed is what a change set reports about services: HOST REASONS, sorted.
func changed(c federation.ChangeSet) []string {
	var out []string
	for _, s := range c.Services {
		text := string(s.Key.Hostname) + " " + s.Reasons.String()
		if s.Gone {
			text += " gone"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func expect(t testing.TB, c federation.ChangeSet, reasons federation.Reason, services ...string) {
	t.Helper()
	if got := changed(c); !slices.Equal(got, services) || c.Reasons() != reasons || c.All {
		t.Errorf("changed %v for %v, want %v for %v", got, c.Reasons(), services, reasons)
	}
}

func (w *fixture) problems() []string {
	var out []string
	for c := range w.mesh.Clusters() {
		for p := range w.mesh.Problems(c.ID) {
			out = append(out, p.Code+" "+p.Object+" "+p.Field)
		}
	}
	slices.Sort(out)
	return out
}
