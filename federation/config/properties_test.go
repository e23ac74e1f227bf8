package config_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"pgregory.net/rapid"
)

func drawManifest(t *rapid.T) string {
	host := func(label string) string {
		return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label) + ".example.com"
	}
	name := rapid.SampledFrom([]string{"n1", "n2", "n3", "n4"}).Draw(t, "name")
	app := rapid.SampledFrom([]string{"x", "z"}).Draw(t, "app")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		of := workload(name, fmt.Sprintf(`{address: 10.0.0.%d, labels: {app: %s}}`, rapid.IntRange(1, 3).Draw(t, "address"), app))
		if rapid.Bool().Draw(t, "reported") {
			of = annotated(of, `{proxy.istio.io/health-checks-enabled: "true"}`)
		}
		return of
	case 5:
		return health(name, fmt.Sprintf(`{account: shop/default, address: 10.0.0.%d, unhealthy: %s}`, rapid.IntRange(1, 3).Draw(t, "address"),
			rapid.SampledFrom([]string{"", "refused"}).Draw(t, "unhealthy")))
	case 1:
		return fmt.Sprintf("apiVersion: isthmus.dev/v1\nkind: Allocation\nmetadata: {name: %s, namespace: shop}\nspec: {addresses: [240.240.0.%d]}", host("host"), rapid.IntRange(1, 9).Draw(t, "vip"))
	case 2:
		return fmt.Sprintf("apiVersion: isthmus.dev/v1\nkind: ServiceBinding\nmetadata: {name: %s, namespace: shop}\nspec: {hostname: %s, services: [{hostname: %s}]}", name, host("host"), host("target"))
	}
	members := rapid.SampledFrom([]string{
		"", "endpoints: [{address: 10.1.0.1}]",
		fmt.Sprintf("workloadSelector: {labels: {app: %s}}", app),
	}).Draw(t, "members")
	return entry(name, fmt.Sprintf(`{hosts: [%s, %s], resolution: %s, ports: [{number: %d, name: p%d}], %s}`, host("first"), host("second"),
		rapid.SampledFrom([]string{"STATIC", "DNS", "NONE"}).Draw(t, "resolution"), rapid.IntRange(80, 81).Draw(t, "port"),
		rapid.IntRange(0, 1).Draw(t, "portName"), members))
}

// said is all that a configuration says to the mesh.
type said struct {
	Contribution federation.Edit
	Problems     []string
	Objects      []federation.ObjectKey
	Missing      []string
}

func (w *fixture) said() said {
	s := said{Contribution: w.mesh.Contribution(w.state.Source()), Problems: w.problems()}
	for o := range w.mesh.Objects().All() {
		s.Objects = append(s.Objects, o.Key)
	}
	for _, c := range w.state.MissingAllocations() {
		text := c.Key.String()
		if c.Object != nil {
			text += string(c.Object.Manifest)
		}
		s.Missing = append(s.Missing, text)
	}
	return s
}

// TestIncrementalEqualsFromNothing changes a configuration in random steps: the
// mesh is then the same as if it had been told everything at once.
func TestIncrementalEqualsFromNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newFixture()
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			var events []config.Event
			for range rapid.IntRange(1, 3).Draw(r, "changes") {
				o := object(t, 1, drawManifest(r))
				if old, has := w.state.Object(o.Key); has && rapid.IntRange(0, 2).Draw(r, "gone") == 0 {
					events = append(events, config.Event{Old: old})
				} else {
					events = append(events, config.Event{New: o})
				}
			}
			w.take(events)
		}
		var all []config.Event
		for o := range w.state.Objects() {
			all = append(all, config.Event{New: o})
		}
		fresh := &fixture{state: config.NewState(config.Options{Hub: "hub"}), mesh: federation.Empty()}
		fresh.take(rapid.Permutation(all).Draw(r, "order"))
		if diff := cmp.Diff(fresh.said(), w.said(), cmp.Comparer(func(a, b *federation.Shard) bool { return a.Equal(b) }),
			cmp.Comparer(func(a, b *federation.Workload) bool { return a.Equal(b) })); diff != "" {
			r.Errorf("from nothing (-) and step by step (+): %s", diff)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, kind := range []string{"ServiceEntry", "VirtualService", "WorkloadEntry", "DestinationRule"} {
		f.Add("networking.istio.io", kind,
			[]byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"hosts":["a"],"host":"b","http":[{"match":[null]}],"address":"1"}}`))
	}
	f.Add("gateway.networking.k8s.io", "HTTPRoute", []byte(`{"spec":{"parentRefs":[{}],"hostnames":["a"]}}`))
	f.Add("isthmus.dev", "ServiceBinding", []byte(`{"spec":{"hostname":"a","services":[{}]}}`))
	f.Add("isthmus.dev", "Allocation", []byte(`{"spec":{"addresses":["1.2.3.4","::"]}}`))
	f.Fuzz(func(t *testing.T, group, kind string, manifest []byte) {
		o := &config.Object{Key: federation.ObjectKey{Group: group, Kind: kind, Namespace: "shop", Name: "o"}, Manifest: manifest}
		w := newFixture()
		w.take([]config.Event{{New: o}})
		if w.state.Len() != 1 {
			t.Error("the object is lost")
		}
		w.take([]config.Event{{Old: o}})
		if w.state.Len() != 0 || w.mesh.Services().Len() != 0 || w.mesh.Objects().Len() != 0 || len(w.problems()) != 0 {
			t.Error("something of the object stays")
		}
	})
}
