package envoy_test

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// grpcTargets writes the names that a client of that id may dial as NAME → ROUTES.
func grpcTargets(t *testing.T, id string, w *fixture) []string {
	t.Helper()
	built := buildAll(t, parse(t, id, map[string]any{"GENERATOR": "grpc"}), w.snapshot)
	var all []string
	for _, l := range built[envoy.ListenerType] {
		_, routes := listenerRefersTo(t, l.message.(*listenerv3.Listener))
		all = append(all, strings.TrimSuffix(l.name, ":80")+" → "+strings.TrimSuffix(strings.Join(routes, " "), ":80"))
	}
	slices.Sort(all)
	return all
}

// A name means what a resolver with the client's domain as its search list
// would find first.
func TestGRPCNamesAreThoseOfAResolver(t *testing.T) {
	w := newFixture().attach("c1", "")
	for _, host := range []federation.Hostname{"web.shop.svc.cluster.local", "web.ops.svc.cluster.local", "web", "db.shop.svc.other.domain"} {
		w.say("c1", federation.ServiceKey{Hostname: host, Namespace: "shop"}, web(at("10.0.0.1", 8080)))
	}
	for id, want := range map[string][]string{
		"sidecar~10.0.0.9~a.shop~shop.svc.cluster.local": {
			"db.shop.svc.other.domain → db.shop.svc.other.domain", "web → web", "web.ops → web.ops.svc.cluster.local",
			"web.ops.svc → web.ops.svc.cluster.local",
			"web.ops.svc.cluster.local → web.ops.svc.cluster.local", "web.shop → web.shop.svc.cluster.local",
			"web.shop.svc → web.shop.svc.cluster.local",
			"web.shop.svc.cluster.local → web.shop.svc.cluster.local",
		},
		"sidecar~10.0.0.9~a.shop~": {
			"db.shop.svc.other.domain → db.shop.svc.other.domain", "web → web", "web.ops.svc.cluster.local → web.ops.svc.cluster.local",
			"web.shop.svc.cluster.local → web.shop.svc.cluster.local",
		},
	} {
		if got := grpcTargets(t, id, w); !slices.Equal(got, want) {
			t.Errorf("%s may dial\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	n := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"GENERATOR": "grpc"})
	if _, reasons := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, w.snapshot), "web:80"); len(reasons) != 1 ||
		reasons[0].Code != resource.ReasonDomainTaken {
		t.Errorf("that web:80 is not the service of the namespace has the reasons %v", reasons)
	}
}

// Sidecars limit what gRPC clients of their namespace see, and rules of a
// namespace are for its own clients.
func TestGRPCClientsAreInTheScopeOfTheirNamespace(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	w.say("c1", federation.ServiceKey{Hostname: "log.ops.svc.cluster.local", Namespace: "ops"}, web(at("10.0.0.2", 8080)))
	w.config(t, `
kind: Sidecar
metadata: {name: own, namespace: shop}
spec: {egress: [{hosts: ["./*"]}]}
---
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.shop.svc.cluster.local, exportTo: ["."], trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}}
`)
	for id, c := range map[string]struct {
		targets int
		policy  clusterv3.Cluster_LbPolicy
	}{
		"sidecar~10.0.0.9~a.shop~": {1, clusterv3.Cluster_LEAST_REQUEST}, "sidecar~10.0.0.9~a.ops~": {2, clusterv3.Cluster_ROUND_ROBIN},
	} {
		if got := grpcTargets(t, id, w); len(got) != c.targets {
			t.Errorf("%s may dial %q, want %d", id, got, c.targets)
		}
		built := build(t, envoy.ClusterType, parse(t, id, map[string]any{"GENERATOR": "grpc"}), w.snapshot)
		if cluster, _ := find[*clusterv3.Cluster](t, built, webCluster); cluster.GetLbPolicy() != c.policy {
			t.Errorf("%s chooses by %s, want %s", id, cluster.GetLbPolicy(), c.policy)
		}
	}
}

// Clients of one namespace share every build; those of all share clusters and
// endpoints of public services.
func TestGRPCClientsShareBuilds(t *testing.T) {
	s := newFixture().attach("c1", "").snapshot
	one := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"GENERATOR": "grpc", "CLUSTER_ID": "c1"})
	two := parse(t, "sidecar~10.0.0.8~b.shop~shop.svc.cluster.local", map[string]any{
		"GENERATOR": "grpc", "CLUSTER_ID": "c1",
		"LABELS": map[string]any{"a": "b"},
	})
	other := parse(t, "sidecar~10.0.0.7~c.ops~ops.svc.cluster.local", map[string]any{"GENERATOR": "grpc", "CLUSTER_ID": "c1"})
	for _, typ := range allTypes {
		if !slices.Equal(envoy.Facets(typ, one, s), envoy.Facets(typ, two, s)) {
			t.Errorf("%s: two clients of one namespace do not share", typ)
		}
	}
	for typ, want := range map[envoy.Type]int{envoy.ClusterType: 2, envoy.EndpointType: 3} { // endpoints near and far
		shared := 0
		for _, f := range envoy.Facets(typ, other, s) {
			if slices.Contains(envoy.Facets(typ, one, s), f) {
				shared++
			}
		}
		if shared != want {
			t.Errorf("%s: %d facets are shared between namespaces, want %d", typ, shared, want)
		}
	}
}
