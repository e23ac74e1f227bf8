package federation

import (
	"fmt"
	"testing"
)

// manyWorkloads has three workloads with the label app=x and many with others in the
// namespace of a service that selects app=x.
func manyWorkloads(many int) *Snapshot {
	all := map[WorkloadKey]*Workload{}
	for i := range many {
		all[we(fmt.Sprint("other-", i))] = entry(fmt.Sprintf("10.3.%d.%d", i/250, i%250), "app", fmt.Sprint("o", i), "all", "back")
	}
	for i := range 3 {
		all[we(fmt.Sprint("x-", i))] = entry(fmt.Sprintf("10.2.0.%d", i+1), "app", "x", "all", "back")
		all[we(fmt.Sprint("y-", i))] = entry(fmt.Sprintf("10.2.1.%d", i+1), "app", "y", "all", "back")
	}
	return after(workloads(hub, all), set(hub, map[ServiceKey]*Shard{webKey: selecting("all", "back", "app", "x")}))
}

// visitsOf is how many workloads selectors look at for the edit.
func visitsOf(s *Snapshot, e Edit) (*Snapshot, int) {
	d := newDraft(s)
	in, m := d.intake(), d.merging()
	in.apply(e)
	m.recompute()
	return d.commit(), d.workloads.visited
}

// TestR61ASelectorLooksAtItsWorkloadsOnly: what a change costs does not depend on how
// many workloads there are in the namespace that the selector does not select.
func TestR61ASelectorLooksAtItsWorkloadsOnly(t *testing.T) {
	few, many := manyWorkloads(100), manyWorkloads(10_000)
	elsewhere := web("")
	elsewhere.Endpoints = []Endpoint{endpoint("10.9.0.1", 80)}
	for _, change := range []struct {
		name string
		edit Edit
		want []string
	}{
		{
			"a workload that it selects", workloads(hub, map[WorkloadKey]*Workload{we("x-0"): entry("10.2.0.9", "app", "x", "all", "back")}),
			[]string{"10.2.0.2", "10.2.0.3", "10.2.0.9"},
		},
		{
			"a workload that it selected", workloads(hub, map[WorkloadKey]*Workload{we("x-1"): entry("10.2.0.2", "app", "z", "all", "back")}),
			[]string{"10.2.0.1", "10.2.0.3"},
		},
		{
			"a workload that it selects now", workloads(hub, map[WorkloadKey]*Workload{we("y-0"): entry("10.2.1.1", "app", "x", "all", "back")}),
			[]string{"10.2.0.1", "10.2.0.2", "10.2.0.3", "10.2.1.1"},
		},
		{"a workload that goes", workloads(hub, nil, we("x-2")), []string{"10.2.0.1", "10.2.0.2"}},
		{
			"another workload", workloads(hub, map[WorkloadKey]*Workload{we("other-1"): entry("10.3.0.251", "app", "o1", "all", "back")}),
			[]string{"10.2.0.1", "10.2.0.2", "10.2.0.3"},
		},
		{
			"another registry's contribution to the service", set(shardOf("c1"), map[ServiceKey]*Shard{webKey: elsewhere}),
			[]string{"10.9.0.1", "10.2.0.1", "10.2.0.2", "10.2.0.3"},
		},
		{"the selector", set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "y")}), []string{"10.2.1.1", "10.2.1.2", "10.2.1.3"}},
	} {
		next, atMany := visitsOf(many, change.edit)
		_, atFew := visitsOf(few, change.edit)
		if atMany != atFew {
			t.Errorf("a change of %s: selectors look at %d workloads of 10,000, and at %d of 100", change.name, atMany, atFew)
		}
		wantOffered(t, next, webKey, change.want...)
	}
}

// TestR61WithoutSelectorsNoLabelsAreIndexed: workloads take memory for their labels
// only where something selects by them.
func TestR61WithoutSelectorsNoLabelsAreIndexed(t *testing.T) {
	s := manyWorkloads(10)
	if got, want := s.workloads.labels.Len(), 2*16; got != want {
		t.Errorf("%d labels are indexed, want those that are selected by, %d", got, want)
	}
	s, _ = Next(s, workloads(hub, map[WorkloadKey]*Workload{we("z"): entry("10.2.2.1", "app", "z", "zone", "a")}, we("x-0")))
	if got, want := s.workloads.labels.Len(), 2*15+1; got != want {
		t.Errorf("%d labels are indexed after a change, want %d", got, want)
	}
	s, _ = Next(s, set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "y")}))
	if got, want := s.workloads.labels.Len(), 16; got != want {
		t.Errorf("%d labels are indexed for the other selector, want %d", got, want)
	}
	s, _ = Next(s, Edit{Source: hub, Services: Delta[ServiceKey, *Shard]{Gone: []ServiceKey{webKey}}})
	if s.workloads.labels.Len() != 0 || s.workloads.selectedBy.Len() != 0 || s.workloads.selectors.Len() != 0 {
		t.Errorf("nothing selects, and %d labels are indexed", s.workloads.labels.Len())
	}
}
