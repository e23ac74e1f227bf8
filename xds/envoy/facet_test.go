package envoy_test

import (
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

func TestProxiesShareFacets(t *testing.T) {
	shop := parse(t, "sidecar~10.0.0.1~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "NETWORK": "n1"})
	alike := parse(t, "sidecar~10.0.0.2~b.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "NETWORK": "n1"})
	other := parse(t, "sidecar~10.0.0.3~c.other~other.svc.cluster.local", map[string]any{"CLUSTER_ID": "c2", "NETWORK": "n1"})
	for typ, want := range map[envoy.Type]struct{ alike, other int }{
		envoy.ClusterType:  {0, 1}, // another namespace
		envoy.EndpointType: {0, 3}, // another namespace, and another cluster where that matters; the network is the same
		envoy.ListenerType: {1, 3}, // the workload; another cluster and namespace
		envoy.RouteType:    {0, 1}, // other short names
	} {
		unshared := func(n envoy.Node) int {
			return len(slices.DeleteFunc(envoy.Facets(typ, n, federation.Empty()),
				func(f envoy.Facet) bool { return slices.Contains(envoy.Facets(typ, shop, federation.Empty()), f) }))
		}
		if unshared(alike) != want.alike || unshared(other) != want.other {
			t.Errorf("%s: a proxy of its kind has %d facets of its own and a stranger %d, want %d and %d", typ, unshared(alike),
				unshared(other), want.alike, want.other)
		}
	}
}

func TestRoutersGetClustersAndEndpointsOnly(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	for _, id := range []string{"router~10.0.0.9~gw.edge~edge.svc.cluster.local", "ingress~10.0.0.9~gw.edge~edge.svc.cluster.local"} {
		built := buildAll(t, parse(t, id, nil), w.snapshot)
		name := []string{"outbound|80||web.shop.svc.cluster.local"}
		if !slices.Equal(namesOf(built[envoy.ClusterType]), name) || !slices.Equal(namesOf(built[envoy.EndpointType]), name) {
			t.Errorf("%s gets the clusters %q and the endpoints of %q", id, namesOf(built[envoy.ClusterType]), namesOf(built[envoy.EndpointType]))
		}
		if len(built[envoy.ListenerType])+len(built[envoy.RouteType]) > 0 {
			t.Errorf("%s gets listeners or routes", id)
		}
	}
}

// An endpoint's change may touch the assignment alone; a cluster of a DNS
// service holds its endpoints itself.
func TestDependenciesSayWhatMatters(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	dns := web(at("backend.example.com", 8080))
	dns.Resolution = federation.DNSLB
	w.say("c1", key("dns.shop"), dns)
	n := client(t)
	for _, c := range []struct {
		typ       envoy.Type
		name      string
		key       federation.ServiceKey
		endpoints bool
	}{
		{envoy.ClusterType, "outbound|80||web.shop.svc.cluster.local", webKey, false},
		{envoy.EndpointType, "outbound|80||web.shop.svc.cluster.local", webKey, true},
		{envoy.ClusterType, "outbound|80||dns.shop", key("dns.shop"), true},
		{envoy.ListenerType, "0.0.0.0_80", key("dns.shop"), false},
		{envoy.RouteType, "80", webKey, false},
	} {
		for _, r := range build(t, c.typ, n, w.snapshot) {
			if r.name != c.name {
				continue
			}
			reasons, _ := r.deps.Services.Get(c.key)
			if reasons&federation.ReasonSpec == 0 || (reasons&federation.ReasonEndpoints != 0) != c.endpoints {
				t.Errorf("%s %s depends on %s of the service", c.typ, c.name, reasons)
			}
		}
	}
}

func TestUnknownNamesDoNotExist(t *testing.T) {
	s, n := newFixture().attach("c1", "").say("c1", webKey, web()).snapshot, client(t)
	for _, typ := range allTypes {
		for _, f := range envoy.Facets(typ, n, federation.Empty()) {
			for _, name := range []string{
				"", "outbound|80||gone", "outbound|81||web.shop.svc.cluster.local", "outbound|80|v1|web.shop.svc.cluster.local",
				"0.0.0.0_81", "10.1.0.1_80", "81", "http_proxy", "inbound|80||",
			} {
				if m, _, err := envoy.Build(typ, name, f, s.Read()); m != nil || err != nil {
					t.Errorf("%s %q in %s is %v, %v", typ, name, f, m, err)
				}
			}
		}
	}
	if _, _, err := envoy.Build("type.googleapis.com/unknown", "x", envoy.Facet{}, s.Read()); err == nil {
		t.Error("an unknown type is built")
	}
}
