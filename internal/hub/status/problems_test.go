package status

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"
	api "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/identity"
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

// TestProblemsOfOthersCostNothing: the findings of an object cost the same, whatever is wrong
// with others.
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
		return testing.AllocsPerRun(10, func() { status.Findings(snapshot, proxies, objectOf(3)) })
	}
	// Walking the problems costs an allocation for each; the race detector adds one or two.
	if few, many := allocations(10), allocations(1000); many > few+10 {
		t.Errorf("an object costs %v allocations among 10 problems, and %v among 1,000", few, many)
	}
}

// patchOfClusters matches nothing as long as there is no proxy, where EnvoyFilters take effect.
func patchOfClusters() *api.EnvoyFilter {
	return &api.EnvoyFilter{ConfigPatches: []*api.EnvoyFilter_EnvoyConfigObjectPatch{{
		ApplyTo: api.EnvoyFilter_CLUSTER,
		Patch:   &api.EnvoyFilter_Patch{Operation: api.EnvoyFilter_Patch_MERGE, Value: &structpb.Struct{}},
	}}}
}

// drawHistory edits one of few objects, a problem with it, or the settings.
func drawHistory(t *rapid.T) (source federation.ShardKey, e federation.Edit) {
	key := objectOf(rapid.IntRange(0, 1).Draw(t, "object"))
	if rapid.Bool().Draw(t, "EnvoyFilter") {
		key.Kind = "EnvoyFilter"
	}
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		o := &federation.Object{Key: key, Names: []string{"a.example"}, Digest: "1"}
		switch key.Kind {
		case "EnvoyFilter":
			o.Spec = patchOfClusters()
		default:
			o.Spec = &networking.ServiceEntry{Hosts: []string{"a.example"}, Location: networking.ServiceEntry_MESH_INTERNAL}
		}
		e.Objects.Set = map[federation.ObjectKey]*federation.Object{key: o}
		if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
			e.Objects = federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{key}}
		}
		return federation.ShardKey{Provider: federation.Operator}, e
	case 1:
		settings := &federation.MeshSettings{}
		if rapid.Bool().Draw(t, "any EnvoyFilter") {
			settings.EnvoyFilters.Namespaces = []string{"*"}
		}
		e.Objects.Set = map[federation.ObjectKey]*federation.Object{federation.MeshSettingsKey: {
			Key: federation.MeshSettingsKey, Spec: settings, Digest: fmt.Sprintf("%+v", settings),
		}}
		return federation.ShardKey{Provider: federation.Operator}, e
	}
	of := rapid.SampledFrom([]string{key.Title(), key.String(), refOf("c1", secret).Title()}).Draw(t, "problem of")
	e.Problems.Full = rapid.IntRange(0, 3).Draw(t, "no other") == 0
	e.Problems.Set = map[string]federation.Problem{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"): {
		Code: rapid.SampledFrom([]string{"INVALID", federation.CodeNotHonoured, identity.ProblemMissing}).Draw(t, "code"), Object: of,
		Field: rapid.SampledFrom([]string{"spec", "spec.hosts"}).Draw(t, "field"), Message: "it is wrong",
	}}
	return federation.ShardKey{Cluster: "hub", Provider: federation.External}, e
}

var secret = gatewayapi.Secret{Namespace: "shop", Name: "cert"}

// TestPropertyStatusesAreAsComputedFromNothing: after each edit of a random history, the findings of
// each object, and what is missing of a Secret, are as computed from nothing, although they are
// computed again only if something changed that they were computed from.
func TestPropertyStatusesAreAsComputedFromNothing(t *testing.T) {
	w := Written{Objects: &Objects{Hub: "hub", Proxies: noReasons{}}, Fleet: fleet.New()}
	var mesh *federation.Aggregate
	compute := func(r *federation.Reader, key federation.ObjectKey) string {
		r.For(federation.AnyCluster)
		return fmt.Sprint(w.Findings(mesh.Latest(), r, key), w.MissingSecret(r, "c1", secret))
	}
	rapid.Check(t, func(t *rapid.T) {
		mesh = federation.NewAggregate(nil)
		kept := derive.NewTable(compute)
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			source, edit := drawHistory(t)
			mesh.Open(source).Update(edit)
			for i := range 2 {
				for _, kind := range []string{"ServiceEntry", "EnvoyFilter"} {
					key := objectOf(i)
					key.Kind = kind
					if got, want := kept.Get(mesh.Latest(), key), compute(mesh.Latest().Read(), key); got != want {
						t.Fatalf("of %s is kept\n%s\nfrom nothing it is\n%s", key, got, want)
					}
				}
			}
		}
	})
}
