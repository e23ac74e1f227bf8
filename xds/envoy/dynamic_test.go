package envoy_test

import (
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// TestK61OnlyNamesOfTheEntryAreResolved: whatever a VirtualService says, requests and connections
// of others go nowhere, and the VirtualService has the reason.
func TestK61OnlyNamesOfTheEntryAreResolved(t *testing.T) {
	const to = `{destination: {host: "*.example.com", port: {number: 80}}`
	for name, c := range map[string]struct{ routes, reason string }{
		"a port where nothing is resolved": {`http: [{route: [` + to + `}]}]`, "and not on port 90"},
		"a copy":                           {`http: [{route: [{destination: {host: web.shop}}], mirror: {host: "*.example.com", port: {number: 80}}}]`, "not those of copies"},
		"a share with a host of its own": {
			`http: [{route: [` + to +
				`, weight: 1, headers: {request: {set: {Host: a.example.com}}}}, {destination: {host: web.shop}, weight: 1}]}]`,
			"change the host for the whole route",
		},
		"a host that is none of them": {
			`http: [{rewrite: {authority: kubernetes.default.svc}, route: [` + to + `}]}]`,
			"does not take requests for kubernetes.default.svc",
		},
	} {
		t.Run(name, func(t *testing.T) {
			port := uint16(80)
			if strings.HasPrefix(name, "a port") {
				port = 90
			}
			w := newFixture().attach("c1", "").resolveNames(t, dynamicEntry(80, federation.HTTP)).say("c1", key("web.shop"),
				tcp(port, federation.HTTP, "10.96.0.1/32"))
			w.config(t, "kind: VirtualService\nmetadata: {name: v, namespace: shop}\nspec: {hosts: [web.shop], "+c.routes+"}")
			n := parse(t, "sidecar~10.1.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
			var reasons []string
			for _, r := range build(t, envoy.RouteType, n, w.snapshot) {
				for _, why := range r.reasons {
					reasons = append(reasons, why.Message)
				}
			}
			if !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, c.reason) }) {
				t.Errorf("the reasons are %q, want one with %q", reasons, c.reason)
			}
		})
	}
}

// TestK61ListenersResolveForThoseWhoSeeTheEntry: an entry of one namespace changes nothing for
// proxies of others.
func TestK61ListenersResolveForThoseWhoSeeTheEntry(t *testing.T) {
	entry := dynamicEntry(80, federation.HTTP)
	entry.ExportTo = []string{"."}
	fixture := newFixture().attach("c1", "").resolveNames(t, entry).say("c1", key("web.shop"), httpOn(80, "10.96.0.1/32"))
	for namespace, want := range map[string]bool{"shop": true, "other": false} {
		n := parse(t, "sidecar~10.1.0.9~a."+namespace+"~"+namespace+".svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
		l, _ := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, fixture.snapshot), "0.0.0.0_80")
		if got := strings.Contains(prototext.Format(l), resource.DynamicHTTPFilter); got != want {
			t.Errorf("the listener of namespace %s resolves names: %t, want %t", namespace, got, want)
		}
	}
}

// TestK61RoutesForEverythingComeLastAtGateways, those for the names of an entry too, though they
// take these alone.
func TestK61RoutesForEverythingComeLastAtGateways(t *testing.T) {
	w := newFixture().attach("c1", "").resolveNames(t, dynamicEntry(80, federation.HTTP)).say("c1", key("web.shop"), httpOn(80, "10.96.0.1/32"))
	w.config(t, `kind: Gateway
metadata: {name: out, namespace: shop}
spec: {selector: {istio: egress}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
kind: VirtualService
metadata: {name: older, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {hosts: ["*"], gateways: [shop/out], http: [{route: [{destination: {host: "*.example.com", port: {number: 80}}}]}]}
---
kind: VirtualService
metadata: {name: younger, namespace: shop, creationTimestamp: "2026-01-02T00:00:00Z"}
spec: {hosts: ["*"], gateways: [shop/out], http: [{match: [{uri: {prefix: /web}}], route: [{destination: {host: web.shop}}]}]}`)
	n := parse(t, "router~10.0.0.9~gw.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"istio": "egress"}})
	routes := build(t, envoy.RouteType, n, w.snapshot)
	var clusters []string
	for _, r := range routes[0].message.(*routev3.RouteConfiguration).GetVirtualHosts()[0].GetRoutes() {
		clusters = append(clusters, r.GetRoute().GetCluster())
	}
	want := []string{"outbound|80||web.shop", "outbound|80||*.example.com", ""} // the last refuses other hosts
	if !slices.Equal(clusters, want) {
		t.Errorf("the routes lead to %q, want %q", clusters, want)
	}
}
