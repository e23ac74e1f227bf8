package envoy_test

import (
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// TestG103DefaultsOfRoutes: what a route does not say about its time, its copies and its shares is as Istio's reference has it.
func TestG103DefaultsOfRoutes(t *testing.T) {
	action := func(route string) *routev3.RouteAction {
		t.Helper()
		w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080))).config(t,
			"kind: VirtualService\nmetadata: {name: web, namespace: shop}\nspec: {hosts: [web.shop.svc.cluster.local], http: [{"+route+"}]}")
		for _, r := range build(t, envoy.RouteType, client(t), w.snapshot) {
			for _, host := range r.message.(*routev3.RouteConfiguration).GetVirtualHosts() {
				if host.GetDomains()[0] == "web.shop.svc.cluster.local" {
					return host.GetRoutes()[0].GetRoute()
				}
			}
		}
		t.Fatalf("the route %s does not exist", route)
		return nil
	}
	const to = "{destination: {host: web.shop.svc.cluster.local}"
	one := action("route: [" + to + "}], mirrors: [" + to + "}]")
	old := action("route: [" + to + "}], mirror: {host: web.shop.svc.cluster.local}")
	shares := action("route: [" + to + ", weight: 3}, " + to + "}, " + to + ", weight: 1}]").GetWeightedClusters().GetClusters()
	copied := func(a *routev3.RouteAction) uint32 {
		fraction := a.GetRequestMirrorPolicies()[0].GetRuntimeFraction().GetDefaultValue()
		return fraction.GetNumerator() / 10_000 // of a million
	}
	for _, c := range []struct {
		field     string
		got, want any
	}{
		{"timeout", one.GetTimeout().AsDuration(), time.Duration(0)}, // none
		{"timeout, of streams", one.GetMaxStreamDuration().GetMaxStreamDuration() == nil, true},
		{"timeout, of gRPC calls", one.GetMaxStreamDuration().GetGrpcTimeoutHeaderMax() != nil, true}, // grpc-timeout
		{"destination.port", one.GetCluster(), "outbound|80||web.shop.svc.cluster.local"},             // the only one
		{"destination.subset", one.GetCluster(), "outbound|80||web.shop.svc.cluster.local"},
		{"weight of the only destination", one.GetWeightedClusters() == nil, true}, // 100
		{"weight of one of several", len(shares), 2},                               // 0
		{"mirrors[].percentage", copied(one), uint32(100)},
		{"mirrorPercentage", copied(old), uint32(100)},
		{"rewrite", one.GetPrefixRewrite() + one.GetHostRewriteLiteral(), ""},
	} {
		if c.got != c.want {
			t.Errorf("without %s, Envoy has %v, want %v", c.field, c.got, c.want)
		}
	}
}
