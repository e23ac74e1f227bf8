package config_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
)

// TestSeed7 has a private entry: its own namespace alone sees the service.
func TestSeed7(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", `{hosts: [a.example.com], exportTo: ["."], resolution: STATIC, ports: [{number: 80, name: http}]}`))
	svc, _ := w.mesh.Service(shop("a.example.com"))
	if !svc.VisibleFrom("shop") || svc.VisibleFrom("other") {
		t.Errorf("exported to %v", svc.ExportTo)
	}
}

// TestSeed33 has a VirtualService: the change set names it and nothing else.
func TestSeed33(t *testing.T) {
	w := newFixture()
	c := w.apply(t, istio("VirtualService", "shop", "web", `{hosts: [web]}`))
	if c.Reasons() != federation.ReasonConfig || len(c.Services) > 0 || len(c.Objects) != 1 || c.Objects[0].Key.Name != "web" {
		t.Errorf("%v: %+v", c.Reasons(), c)
	}
}

// TestSeed34 has a store of record: each write has a revision, and who waits for
// it sees the object.
func TestSeed34(t *testing.T) {
	store := memory.New(federation.ServiceEntryKind)
	mesh := federation.NewAggregate(nil)
	a, stop := run(t, mesh, config.Named{Name: "memory", Source: store})
	defer stop()
	last := int64(0)
	for _, port := range []string{"80", "81"} {
		o := object(t, 0, entry("a", `{hosts: [a.example.com], resolution: STATIC, ports: [{number: `+port+`, name: http}]}`))
		revision, err := store.Commit(t.Context(), config.Commit{Base: last, Changes: []config.Change{{Key: o.Key, Object: o}}})
		if err != nil || revision <= last {
			t.Fatalf("revision %d after %d, %v", revision, last, err)
		}
		view, err := a.WaitFor(t.Context(), revision)
		if err != nil {
			t.Fatal(err)
		}
		stored, _ := view.State.Object(o.Key)
		svc, _ := mesh.Latest().Service(shop("a.example.com"))
		if stored.Revision != revision || fmt.Sprint(svc.Ports[0].Number) != port || mesh.Latest().Revision() < revision {
			t.Errorf("at revision %d: %+v, %+v", revision, stored, svc)
		}
		last = revision
	}
}

func TestTypedQueries(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("b", automatic), entry("a", automatic), entry("bad", `{hosts: 7}`),
		istio("Gateway", "shop", "all", `{servers: []}`), istio("Gateway", "shop", "edge", `{selector: {istio: edge}, servers: []}`),
		istio("Gateway", "shop", "other", `{selector: {istio: other}, servers: []}`))
	var entries, gateways []string
	for key, spec := range w.state.ServiceEntries() {
		entries = append(entries, key.Name+" "+spec.GetHosts()[0])
	}
	for key := range w.state.Gateways(map[string]string{"istio": "edge", "more": "labels"}) {
		gateways = append(gateways, key.Name)
	}
	if !slices.Equal(entries, []string{"a a.example.com", "b a.example.com"}) || !slices.Equal(gateways, []string{"all", "edge"}) {
		t.Errorf("entries %v, gateways %v", entries, gateways)
	}
}

// TestEntrySelectsPodsOfClusters has pods of an attached cluster as endpoints of
// a ServiceEntry, beside a WorkloadEntry.
func TestEntrySelectsPodsOfClusters(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", selecting), workload("x", `{address: 10.0.0.1, labels: {app: x}}`))
	pod := &federation.Workload{Addresses: []netip.Addr{netip.MustParseAddr("10.8.0.1")}, Labels: map[string]string{"app": "x"}}
	w.mesh, _ = federation.Next(w.mesh, federation.Edit{
		Source: federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{
			Full: true,
			Set:  map[federation.WorkloadKey]*federation.Workload{{Namespace: "shop", Name: "web-1"}: pod},
		},
	})
	w.has(t, "a.example.com", "10.0.0.1", "10.8.0.1")
}

func TestUndecodableObjectIsSetAsideUntilItIsGood(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", automatic), istio("VirtualService", "shop", "web", `{hosts: [web]}`))
	w.apply(t, entry("a", `{hosts: 7}`), istio("VirtualService", "shop", "web", `{hosts: 7}`))
	if got := w.problems(); len(got) != 2 || w.mesh.Services().Len() != 0 || w.mesh.Objects().Len() != 0 || w.state.Len() != 2 {
		t.Errorf("problems %v, %d services, %d objects", got, w.mesh.Services().Len(), w.mesh.Objects().Len())
	}
	w.apply(t, entry("a", automatic), istio("VirtualService", "shop", "web", `{hosts: [web]}`))
	if got := w.problems(); len(got) != 0 || w.mesh.Services().Len() != 1 || w.mesh.Objects().Len() != 2 {
		t.Errorf("problems %v, %d services, %d objects", got, w.mesh.Services().Len(), w.mesh.Objects().Len())
	}
}

// TestNULJoinsNothing has hostnames that would be keys of another namespace's
// service, if their parts were read as such.
func TestNULJoinsNothing(t *testing.T) {
	const victim = `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`
	w := newFixture()
	w.apply(t, istio("ServiceEntry", "evil", "b",
		`{hosts: ["a.example.com\0shop\0x"], resolution: STATIC, ports: [{number: 81, name: more}], endpoints: [{address: 10.6.6.6}]}`))
	w.apply(t, istio("ServiceEntry", "evil", "c",
		`{hosts: [c.example.com], subjectAltNames: ["no escape: \\\\u0000"], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.3}]}`))
	w.apply(t, entry("a", victim))
	w.has(t, "a.example.com", "10.0.0.1")
	if got := w.problems(); len(got) != 1 || !strings.HasPrefix(got[0], "UNDECODABLE ") || w.mesh.Services().Len() != 2 {
		t.Errorf("problems %v, %d services", got, w.mesh.Services().Len())
	}
}

// TestDryRunIsThePublication compares what a dry run says with what is published.
func TestDryRunIsThePublication(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", automatic))
	events := []config.Event{{New: object(t, 9, entry("b", `{hosts: [b.example.com], resolution: DNS, ports: [{number: 80, name: http}]}`))}}
	_, dry := w.state.Next(events, 9)
	_, real := w.state.Next(events, 9)
	if a, b := renderEdit(t, dry, nil), renderEdit(t, real, nil); string(a) != string(b) || w.state.Len() != 1 {
		t.Errorf("dry %s, real %s", a, b)
	}
}

// many is a configuration of n ServiceEntries, and two changes of one of them.
func many(t testing.TB, n int) (*config.State, [2]config.Event) {
	var all []config.Event
	for i := range n {
		all = append(all, config.Event{New: object(t, 1, entry(fmt.Sprintf("e%05d", i),
			fmt.Sprintf(`{hosts: [h%05d.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`,
				i)))})
	}
	state, _ := config.NewState(config.Options{Hub: "hub"}).Next(all, 1)
	var changes [2]config.Event
	for i := range changes {
		changes[i].New = object(t, int64(2+i),
			entry("e00007",
				fmt.Sprintf(`{hosts: [h00007.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.1.%d}]}`,
					i+1)))
	}
	return state, changes
}

// TestOneChangeCostsWhatItChanges counts what one change allocates: it does not
// grow with the configuration but for the depth of its trees.
func TestOneChangeCostsWhatItChanges(t *testing.T) {
	cost := func(n int) float64 {
		state, changes := many(t, n)
		i := 0
		return testing.AllocsPerRun(50, func() {
			state, _ = state.Next(changes[i%2:i%2+1], int64(i))
			i++
		})
	}
	if small, large := cost(100), cost(10_000); large > 1.5*small {
		t.Errorf("a change among 10,000 objects allocates %v times, among 100 %v times", large, small)
	}
}

// BenchmarkOneEntryOf changes one ServiceEntry among many: the cost of both
// sizes is about the same.
func BenchmarkOneEntryOf(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			state, changes := many(b, n)
			b.ResetTimer()
			for i := range b.N {
				next, edit := state.Next(changes[i%2:i%2+1], int64(i))
				if len(edit.Services.Set) != 1 {
					b.Fatalf("%d services changed", len(edit.Services.Set))
				}
				state = next
			}
		})
	}
}
