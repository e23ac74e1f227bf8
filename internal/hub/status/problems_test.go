package status

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

// withProblems is a mesh in which that many objects have a problem each.
func withProblems(count int) (*federation.Aggregate, *federation.Writer) {
	mesh := federation.NewAggregate(nil)
	writer := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	set := map[string]federation.Problem{}
	for i := range count {
		title := objectOf(i).Title()
		set[title] = federation.Problem{Code: "INVALID", Object: title, Field: "spec", Message: "it is wrong"}
	}
	writer.Update(federation.Edit{Problems: federation.Delta[string, federation.Problem]{Set: set}})
	return mesh, writer
}

func objectOf(i int) federation.ObjectKey {
	return federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
}

// TestProblemsOfOthersCostNothing: the snapshot is read for the first object; the
// findings of each further one come from the index, whatever is wrong with others.
func TestProblemsOfOthersCostNothing(t *testing.T) {
	proxies := fleet.New().Latest()
	allocations := func(count int) float64 {
		status := &Objects{Hub: "hub", Proxies: noReasons{}}
		mesh, _ := withProblems(count)
		snapshot := mesh.Latest()
		for i := range count {
			if found := status.Findings(snapshot, proxies, objectOf(i)); len(found) != 1 || found[0].Key != objectOf(i) {
				t.Fatalf("the findings of %s are %+v", objectOf(i), found)
			}
		}
		first := status.index.latest.Load()
		each := testing.AllocsPerRun(10, func() { status.index.of(snapshot, "hub", objectOf(3)) })
		if status.index.latest.Load() != first {
			t.Errorf("with %d problems the index of one snapshot was made again", count)
		}
		return each
	}
	// Walking the problems costs an allocation for each; the race detector adds one or two.
	if few, many := allocations(10), allocations(1000); many > few+10 {
		t.Errorf("an object costs %v allocations among 10 problems, and %v among 1,000", few, many)
	}
}

// TestIndexFollowsTheSnapshot and does not keep the one that it was made of.
func TestIndexFollowsTheSnapshot(t *testing.T) {
	status := &Objects{Hub: "hub", Proxies: noReasons{}}
	proxies := fleet.New().Latest()
	mesh, writer := withProblems(3)
	if found := status.Findings(mesh.Latest(), proxies, objectOf(1)); len(found) != 1 {
		t.Errorf("the findings of an object with a problem are %+v", found)
	}
	old := weak.Make(mesh.Latest())
	writer.Update(federation.Edit{Problems: federation.Delta[string, federation.Problem]{Full: true}})
	runtime.GC()
	if old.Value() != nil {
		t.Error("the superseded snapshot is still in memory")
	}
	if found := status.Findings(mesh.Latest(), proxies, objectOf(1)); len(found) != 0 {
		t.Errorf("without the problem the findings are %+v", found)
	}
}
