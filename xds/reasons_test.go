package xds

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// TestPropertyReasonsAreThoseOfTheLastBuilds: after random builds of several resources, what is
// told and counted is what the last build of each said, whatever it has in common with the one before.
func TestPropertyReasonsAreThoseOfTheLastBuilds(t *testing.T) {
	subjects := []federation.ObjectKey{{Name: "a"}, {Name: "b"}}
	said := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) envoy.Reason {
		return envoy.Reason{
			Code: rapid.SampledFrom([]string{"X", "Y"}).Draw(t, "code"), Message: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "message"),
			Cause: rapid.SampledFrom(subjects).Draw(t, "cause"),
		}
	}), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		counted := map[string]int{}
		all := newReasons(func(code string, change int) { counted[code] += change }, func() {})
		last := map[int][]envoy.Reason{}
		for range rapid.IntRange(1, 20).Draw(t, "builds") {
			resource, now := rapid.IntRange(0, 2).Draw(t, "resource"), said.Draw(t, "said")
			all.replace(last[resource], now)
			last[resource] = now
			want := map[string]int{}
			for _, subject := range subjects {
				var told, found []string
				for _, of := range last {
					for _, r := range of {
						if r.Cause == subject {
							told = append(told, r.Code+r.Message)
						}
					}
				}
				slices.Sort(told)
				told = slices.Compact(told)
				for _, one := range told {
					want[one[:1]]++
				}
				for _, r := range all.about(subject) {
					found = append(found, r.Code+r.Message)
				}
				if !slices.Equal(found, told) {
					t.Fatalf("of %s %v is told, and the builds said %v", subject.Name, found, told)
				}
			}
			for _, code := range []string{"X", "Y"} {
				if counted[code] != want[code] {
					t.Fatalf("%d of %s are counted, and there are %d", counted[code], code, want[code])
				}
			}
		}
	})
}

// What builders exclude is reported on its object as long as it is excluded and an
// affected proxy is connected.
func TestR24ReasonsReachTheObjectThatCausedThem(t *testing.T) {
	counted := make(chan string, 100)
	h := newHub(t, func(o *Options) {
		o.Findings = func(code string, change int) { counted <- fmt.Sprintf("%s %+d", code, change) }
	})
	plain := tenantGateway("b", nil)
	plain.Spec.(*networking.Gateway).Servers = []*networking.Server{
		{Port: &networking.Port{Number: 8081, Name: "tcp", Protocol: "TCP"}, Hosts: []string{"*"}},
	}
	set := map[federation.ObjectKey]*federation.Object{}
	for _, o := range []*federation.Object{tenantGateway("a", simpleTLS()), plain, answering("a", "a0")} {
		o.Digest, set[o.Key] = o.Key.String(), o
	}
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: set}})
	loser := tenantKey("Gateway", "b")
	if found := h.server.Reasons(loser); len(found) != 0 {
		t.Errorf("without a proxy, %v", found)
	}
	n := router()
	n.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"istio": structpb.NewStringValue("ingress")}})
	c := h.client(xdstest.Options{Delta: true, Node: n})
	c.get(xdstest.Request{Type: xdstest.LDS})
	found := h.server.Reasons(loser)
	if len(found) != 1 || found[0].Code != "GATEWAY_CONFLICT" {
		t.Fatalf("the Gateway that loses its port has the reasons %v", found)
	}
	if got := <-counted; got != "GATEWAY_CONFLICT +1" {
		t.Errorf("counted %s", got)
	}
	if found := h.server.Reasons(tenantKey("Gateway", "a")); len(found) != 0 {
		t.Errorf("the Gateway that has its port has the reasons %v", found)
	}
	h.writer.Update(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Gone: []federation.ObjectKey{tenantKey("Gateway", "a")}}})
	testbed.WaitFor(t, patience, "the conflict to be over", func() error {
		for _, r := range h.server.Reasons(loser) {
			if r.Code == "GATEWAY_CONFLICT" {
				return fmt.Errorf("%v", r)
			}
		}
		return nil
	})
	c.Close()
	testbed.WaitFor(t, patience, "nothing to be said once the proxy is gone", func() error {
		if found := h.server.Reasons(loser); len(found) > 0 {
			return fmt.Errorf("%v", found)
		}
		return nil
	})
}

// TestR97WhatIsBuiltMakesAnotherFleet: without a stream that reports anything, the fleet has
// another value after a build, after a resource is forgotten and after its group closes, and
// the same one where nothing was built.
func TestR97WhatIsBuiltMakesAnotherFleet(t *testing.T) {
	h := newHub(t)
	n, err := envoy.ParseNode(node("web"))
	if err != nil {
		t.Fatal(err)
	}
	facets := envoy.Facets(envoy.ClusterType, n, h.aggregate.Latest())
	at := groupKey{envoy.ClusterType, facets[len(facets)-1]} // of the services, which are not in the groups of fixed clusters
	g := h.server.acquire(at)
	step := func(what string, differs bool, do func()) {
		t.Helper()
		before := h.fleet.Latest()
		do()
		if got := h.fleet.Latest() != before; got != differs {
			t.Errorf("%s: another value of the fleet: %t, want %t", what, got, differs)
		}
	}
	build := func() {
		g.sync(h.aggregate.Latest())
		g.prepare(slices.Values(g.list()))
	}
	h.set(service("web", 1))
	step("a build", true, build)
	step("nothing to build", false, build)
	h.set(serviceDelta{Gone: []federation.ServiceKey{key("web")}})
	step("a resource is forgotten", true, build)
	step("the group closes", true, func() { h.server.release(at) })
}

// TestR97OtherReasonsAreTold: also those of something that cannot be computed, which come and go
// without a build; the same reasons once more are not told.
func TestR97OtherReasonsAreTold(t *testing.T) {
	told := 0
	all := newReasons(nil, func() { told++ })
	wrong := []envoy.Reason{{Code: "X", Cause: federation.ObjectKey{Name: "a"}}}
	for _, step := range []struct {
		before, now []envoy.Reason
		want        int
	}{{nil, wrong, 1}, {wrong, wrong, 1}, {wrong, nil, 2}, {nil, nil, 2}} {
		all.replace(step.before, step.now)
		if told != step.want {
			t.Errorf("after %v became %v reasons were told %d times, want %d", step.before, step.now, told, step.want)
		}
	}
}
