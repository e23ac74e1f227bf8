package federation

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawKeep is what a full delta keeps of what its source said before.
func drawKeep[K comparable](t *rapid.T, of []K) func(K) bool {
	kept := map[K]bool{}
	for _, k := range of {
		kept[k] = rapid.Bool().Draw(t, "kept")
	}
	if len(kept) == 0 || rapid.Bool().Draw(t, "keeps nothing") {
		return nil
	}
	return func(k K) bool { return kept[k] }
}

func inOrder[K interface {
	comparable
	String() string
}, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Compare(a.String(), b.String()) })
}

// withoutProblems is the view without what Next itself reports.
func withoutProblems(v view) view {
	v.Problems = nil
	for id, c := range v.Clusters {
		c.Problems = 0
		v.Clusters[id] = c
	}
	return v
}

// TestR84PropertyKeptIsAsIfSaidAgain: a full edit that keeps something of its source gives the snapshot of the one that says it again,
// and Completed is that one, whatever was said before.
func TestR84PropertyKeptIsAsIfSaidAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := after(rapid.SliceOfN(rapid.Custom(drawEdit), 1, 8).Draw(t, "edits")...)
		e := Edit{
			Source: shardOf(rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "cluster")), Services: drawServices(t),
			Workloads: drawWorkloads(t),
		}
		e.Services.Full, e.Workloads.Full = true, true
		e.Services.Gone, e.Workloads.Gone = nil, nil
		before := s.Contribution(e.Source)
		e.Services.Keep = drawKeep(t, inOrder(before.Services.Set))
		e.Workloads.Keep = drawKeep(t, inOrder(before.Workloads.Set))
		again := e
		again.Services = Delta[ServiceKey, *Shard]{Full: true, Set: saidAgain(e.Services, before.Services.Set)}
		again.Workloads = Delta[WorkloadKey, *Workload]{Full: true, Set: saidAgain(e.Workloads, before.Workloads.Set)}
		kept, _ := Next(s, e)
		said, _ := Next(s, again)
		if d := differ(withoutProblems(viewOf(said)), withoutProblems(viewOf(kept))); d != "" {
			t.Fatalf("keeping is not as if it were said again:\n%s", d)
		}
		completed := e.Completed(before)
		if !maps.Equal(completed.Services.Set, again.Services.Set) || !maps.Equal(completed.Workloads.Set, again.Workloads.Set) {
			t.Fatalf("completed is %v and %v, want %v and %v", completed.Services.Set, completed.Workloads.Set,
				again.Services.Set, again.Workloads.Set)
		}
	})
}

func saidAgain[K comparable, V any](d Delta[K, V], before map[K]V) map[K]V {
	all := maps.Clone(d.Set)
	for k, v := range before {
		if _, now := all[k]; !now && d.Keep != nil && d.Keep(k) {
			all[k] = v
		}
	}
	return all
}
