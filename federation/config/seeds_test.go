package config_test

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

const (
	endpoints = federation.ReasonEndpoints
	spec      = federation.ReasonSpec
)

// TestSeed20 has the External registry in the mesh whatever the configuration,
// and last: another registry decides about a service that both have.
func TestSeed20(t *testing.T) {
	mesh := federation.NewAggregate(nil)
	source := &fakeSource{kinds: []federation.Kind{federation.ServiceEntryKind}}
	a, stop := run(t, mesh, config.Named{Name: "etcd", Source: source})
	defer stop()
	source.update(config.Update{
		Revision: 1, Full: true,
		Events: []config.Event{{New: object(t, 1,
			entry("a",
				`{hosts: [web.shop.svc.cluster.local], location: MESH_EXTERNAL, resolution: STATIC, ports: [{number: 80, name: se, protocol: TCP}]}`))}},
	})
	if _, err := a.WaitFor(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if hub, ok := mesh.Latest().Cluster("hub"); !ok || hub.Spec.Provider != federation.External || hub.Status.Phase != federation.Ready {
		t.Errorf("the hub's own registry is %+v", hub)
	}
	mesh.Open(federation.ShardKey{
		Cluster:  "zz",
		Provider: federation.Kubernetes,
	}).Update(federation.Edit{Services: federation.Delta[federation.ServiceKey, *federation.Shard]{
		Full: true, Set: map[federation.ServiceKey]*federation.Shard{shop("web.shop.svc.cluster.local"): {Ports: []federation.Port{{
			Name:   "http",
			Number: 80, Protocol: federation.HTTP,
		}}}},
	}})
	svc, _ := mesh.Latest().Service(shop("web.shop.svc.cluster.local"))
	if order := svc.Order(); len(order) != 2 || order[1].Provider != federation.External || svc.MeshExternal || svc.Ports[0].Name != "http" {
		t.Errorf("order %v, external %v, ports %v", order, svc.MeshExternal, svc.Ports)
	}
}

func TestSeed36(t *testing.T) {
	w := newFixture()
	w.apply(t,
		entry("a",
			`{hosts: [a.example.com, b.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`))
	c := w.apply(t,
		entry("a",
			`{hosts: [a.example.com, b.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.2}]}`))
	expect(t, c, endpoints, "a.example.com endpoints", "b.example.com endpoints")
	w.has(t, "a.example.com", "10.0.0.2")
}

// TestSeed37 has a DNS entry: its endpoints are part of its cluster, which
// a reader derives from the resolution; the change set names the service.
func TestSeed37(t *testing.T) {
	w := newFixture()
	w.apply(t,
		entry("a", `{hosts: [a.example.com], resolution: DNS, ports: [{number: 80, name: http}], endpoints: [{address: x.example.com}]}`))
	c := w.apply(t,
		entry("a", `{hosts: [a.example.com], resolution: DNS, ports: [{number: 80, name: http}], endpoints: [{address: y.example.com}]}`))
	expect(t, c, endpoints, "a.example.com endpoints")
	svc, _ := w.mesh.Service(shop("a.example.com"))
	if svc.Resolution != federation.DNSLB {
		t.Errorf("resolution %v", svc.Resolution)
	}
}

func TestSeed38(t *testing.T) {
	w := newFixture()
	c := w.apply(t, entry("a", `{hosts: [a.example.com, b.example.com], resolution: STATIC, ports: [{number: 80, name: http}]}`))
	if c.Reasons()&spec == 0 || len(c.Services) != 2 {
		t.Errorf("%v: %v", c.Reasons(), changed(c))
	}
}

func TestSeed39(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", `{hosts: [a.example.com, b.example.com], resolution: STATIC, ports: [{number: 80, name: http}]}`))
	c := w.delete("ServiceEntry", "a")
	expect(t, c, spec, "a.example.com spec gone", "b.example.com spec gone")
}

// TestSeed40 drops a host in the change that changes the selector, too.
func TestSeed40(t *testing.T) {
	w := newFixture()
	w.apply(t,
		workload("x", `{address: 10.0.0.1, labels: {app: x}}`), workload("y", `{address: 10.0.0.2, labels: {app: "y"}}`),
		entry("a",
			`{hosts: [a.example.com, b.example.com], resolution: STATIC, location: MESH_INTERNAL, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: x}}}`))
	w.has(t, "a.example.com", "10.0.0.1")
	c := w.apply(t,
		entry("a",
			`{hosts: [b.example.com, c.example.com], resolution: STATIC, location: MESH_INTERNAL, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: "y"}}}`))
	if c.Reasons()&spec == 0 || len(c.Services) != 3 {
		t.Errorf("%v: %v", c.Reasons(), changed(c))
	}
	w.has(t, "a.example.com", "no service")
	w.has(t, "b.example.com", "10.0.0.2")
	w.has(t, "c.example.com", "10.0.0.2")
}

func TestSeed41(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`))
	c := w.apply(t,
		entry("a",
			`{hosts: [a.example.com, b.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.2}]}`))
	if got := changed(c); !slices.Contains(got, "a.example.com endpoints") || len(got) != 2 {
		t.Errorf("changed %v", got)
	}
	w.has(t, "b.example.com", "10.0.0.2")
}

const selecting = `{hosts: [a.example.com], resolution: STATIC, location: MESH_INTERNAL, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: x}}}`

func TestSeed42(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", selecting), entry("z",
		`{hosts: [z.example.com], resolution: STATIC, ports: [{number: 80, name: http}], workloadSelector: {labels: {app: x, z: "1"}}}`))
	c := w.apply(t, workload("x", `{address: 10.0.0.1, labels: {app: x, v: "1"}}`))
	expect(t, c, endpoints, "a.example.com endpoints")
	w.has(t, "a.example.com", "10.0.0.1")
	w.has(t, "z.example.com")
}

func TestSeed43(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", selecting))
	w.apply(t, istio("WorkloadEntry", "other", "x", `{address: 10.0.0.1, labels: {app: x}}`))
	w.has(t, "a.example.com")
}

func TestSeed44(t *testing.T) {
	w := newFixture()
	w.apply(t, entry("a", `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}]}`))
	expect(t, w.apply(t, workload("x", `{address: 10.0.0.1, labels: {app: x}}`)), 0)
}

func TestSeed45To48(t *testing.T) {
	w := newFixture()
	other := `{hosts: [b.example.com], resolution: STATIC, location: MESH_INTERNAL, ports: [{number: 80, name: http}], workloadSelector: {labels: {tier: b}}}`
	w.apply(t, entry("a", selecting), entry("b", other),
		workload("x1", `{address: 10.0.0.1, labels: {app: x}}`), workload("x2", `{address: 10.0.0.2, labels: {app: x, tier: b}}`))
	w.has(t, "a.example.com", "10.0.0.1", "10.0.0.2")
	w.has(t, "b.example.com", "10.0.0.2")

	// 47 and 46: the last of b is one of two of a.
	c := w.delete("WorkloadEntry", "x2")
	expect(t, c, endpoints, "a.example.com endpoints", "b.example.com endpoints")
	w.has(t, "a.example.com", "10.0.0.1")
	w.has(t, "b.example.com")

	// 48: relabelled out of one selector, and into another.
	c = w.apply(t, workload("x1", `{address: 10.0.0.1, labels: {tier: b}}`))
	expect(t, c, endpoints, "a.example.com endpoints", "b.example.com endpoints")
	w.has(t, "a.example.com")
	w.has(t, "b.example.com", "10.0.0.1")

	// 45: the last of all.
	expect(t, w.delete("WorkloadEntry", "x1"), endpoints, "b.example.com endpoints")
	w.has(t, "b.example.com")
}

func TestSeed49(t *testing.T) {
	all := []string{
		entry("a", selecting), workload("x", `{address: 10.0.0.1, labels: {app: x}}`),
		workload("y", `{address: 10.0.0.2, labels: {app: x}}`),
	}
	for range 2 {
		w := newFixture()
		for _, m := range all {
			w.apply(t, m)
		}
		w.has(t, "a.example.com", "10.0.0.1", "10.0.0.2")
		slices.Reverse(all)
	}
}

func TestSeed50(t *testing.T) {
	w := newFixture()
	m := entry("a", `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`)
	w.apply(t, m)
	old, _ := w.state.Object(object(t, 0, m).Key)
	c := w.take([]config.Event{{Old: old, New: object(t, old.Revision, m)}})
	if !c.Empty() {
		t.Errorf("nothing changed, and %+v", c)
	}
	expect(t, w.apply(t, m), 0) // a new revision of the same
}

// TestSeed51 has endpoints and spec of one change in one snapshot.
func TestSeed51(t *testing.T) {
	w := newFixture()
	before := w.mesh.Version()
	w.apply(t, entry("a", `{hosts: [a.example.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}`))
	if w.mesh.Version() != before+1 {
		t.Errorf("one change made %d versions", w.mesh.Version()-before)
	}
	w.has(t, "a.example.com", "10.0.0.1")
}

// TestSeed52 counts what one change publishes.
func TestSeed52(t *testing.T) {
	source := &fakeSource{kinds: []federation.Kind{federation.ServiceEntryKind}}
	edits := &recorder{}
	a, stop := run(t, edits, config.Named{Name: "etcd", Source: source})
	defer stop()
	source.update(config.Update{Revision: 1, Full: true})
	source.update(config.Update{
		Revision: 2,
		Events: []config.Event{{New: object(t, 2,
			entry("a", `{hosts: [a.example.com, b.example.com], resolution: DNS, ports: [{number: 80, name: http}]}`))}},
	})
	if _, err := a.WaitFor(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if all := edits.all(); len(all) != 2 || !all[0].Services.Full || all[1].Services.Full ||
		len(all[1].Services.Set) != 2 || all[1].Revision != 2 {
		t.Errorf("edits: %+v", all)
	}
}
