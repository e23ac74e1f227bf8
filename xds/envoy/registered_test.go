package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// runs has the registry of c1 know a pod of shop, at an address.
func (w *fixture) runs(name, address string, network federation.NetworkID, labels map[string]string) *fixture {
	e := federation.Edit{Source: federation.ShardKey{Cluster: "c1", Provider: federation.Mock}}
	e.Workloads.Set = map[federation.WorkloadKey]*federation.Workload{{Namespace: "shop", Name: name}: {
		Addresses: []netip.Addr{netip.MustParseAddr(address)}, Network: network, Labels: labels,
		Locality: federation.Locality{Region: "eu", Zone: "eu-1", SubZone: "a"},
	}}
	return w.apply(e)
}

// TestS19WhatTheRegistryKnowsOfAWorkloadHolds against what its proxy says.
func TestS19WhatTheRegistryKnowsOfAWorkloadHolds(t *testing.T) {
	const sidecar = "kind: Sidecar\nmetadata: {name: web, namespace: shop}\nspec: {workloadSelector: {labels: {app: client}}, egress: [{hosts: ['none/*']}]}"
	for name, c := range map[string]struct {
		pod, address string // that the registry knows
		id           string // of the node
		hint         bool   // what the proxy says counts
	}{
		"by name":                 {"client", "10.0.0.9", "client.shop", false},
		"by address":              {"client", "10.0.0.9", "other.shop", false},
		"unknown":                 {"client", "10.0.0.8", "client.shop", true},
		"a name at another pod's": {"other", "10.0.0.9", "client.shop", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.1")).config(t, sidecar).
				runs(c.pod, c.address, "n1", map[string]string{"app": "known"}).
				say("c1", webKey, web(meshed("10.0.0.1", "n1", 0))).say("c2", webKey, web(meshed("10.0.0.2", "n2", 0)))
			liar := parse(t, "sidecar~10.0.0.9~"+c.id+"~shop.svc.cluster.local", map[string]any{
				"CLUSTER_ID": "c1", "NETWORK": "n2", "NAMESPACE": "shop", "IDENTITY_SOURCE": "ads", "LABELS": map[string]any{"app": "known"},
			})
			want := "map[10.0.0.1:8080:1 192.0.2.1:15443:1]"
			if c.hint {
				want = "map[10.0.0.1:8080:1 10.0.0.2:8080:1]" // as seen from n2
			}
			if got := fmt.Sprint(weights(t, w, liar)); got != want {
				t.Errorf("it says that it is in n2, and is sent to %s, want %s", got, want)
			}
			liar.Labels = map[string]string{"app": "client"}
			if imports := slices.Contains(envoy.Names(envoy.ClusterType, offering(t, w, liar), w.snapshot),
				"outbound|80||web.shop.svc.cluster.local"); imports == c.hint {
				t.Errorf("it says that it is another app, and imports what that one does not: %t", imports)
			}
		})
	}
}

// offering is the last of the node's facets of clusters.
func offering(t *testing.T, w *fixture, n envoy.Node) envoy.Facet {
	t.Helper()
	facets := envoy.Facets(envoy.ClusterType, n, w.snapshot)
	for _, f := range facets {
		if f.Scope == node.ScopeImported || f.Scope == node.ScopePublic {
			return f
		}
	}
	t.Fatalf("the facets are %v", facets)
	return envoy.Facet{}
}

// TestS19LocalityIsThatOfTheRegistry where it knows one.
func TestS19LocalityIsThatOfTheRegistry(t *testing.T) {
	w := newFixture().attach("c1", "n1").runs("client", "10.0.0.9", "n1", nil).
		config(t, "kind: MeshSettings\nmetadata: {name: default}\nspec: {localityLoadBalancing: {enabled: true}}").
		say("c1", webKey, web(located("10.0.0.1", "n1", "eu/eu-1/a"), located("10.0.0.2", "n1", "us/us-1")))
	liar := one(t)
	liar.Locality = federation.Locality{Region: "us", Zone: "us-1"}
	if got := priorities(t, w, liar); got != "0:10.0.0.1 1:10.0.0.2" {
		t.Errorf("priorities are %s", got)
	}
}

// TestS19PodsOfTheNodesNetworkAreNotConfused: of several at one address only the one
// of that name is the proxy's.
func TestS19PodsOfTheNodesNetworkAreNotConfused(t *testing.T) {
	w := newFixture().attach("c1", "n1").runs("a", "10.0.0.9", "n1", map[string]string{"app": "a"}).runs("b", "10.0.0.9",
		"n1", map[string]string{"app": "b"})
	for name, want := range map[string]string{"a": "a", "b": "b", "c": ""} {
		n := parse(t, "sidecar~10.0.0.9~"+name+".shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "shop"})
		got := ""
		if r, known := w.snapshot.At(n.Place()).Registered(n.Workload()); known {
			got = r.Workload.Labels["app"]
		}
		if got != want {
			t.Errorf("%s is found to be %q, want %q", name, got, want)
		}
	}
}

// TestS22OnlyDeclaredGatewaysServe: a router gets clusters and a listener for what it
// passes on only where gateways may be, and for its cluster's network.
func TestS22OnlyDeclaredGatewaysServe(t *testing.T) {
	settings := func(spec string) string { return "kind: MeshSettings\nmetadata: {name: default}\nspec: {" + spec + "}" }
	named := federation.NetworkObject{Gateways: make([]federation.NetworkGateway, 1)}
	named.Gateways[0].Service.Hostname = "gw.shop.svc.cluster.local"
	explicit := named
	explicit.Gateways = []federation.NetworkGateway{{}}
	explicit.Gateways[0].Service.Hostname, explicit.Gateways[0].Service.Namespace = "gw.consul", "shop"
	for name, c := range map[string]struct {
		namespace, network string
		change             func(*fixture)
		why                string // it serves nothing; empty: it serves
	}{
		"root namespace":               {"istio-system", "", nil, ""},
		"root namespace, network said": {"istio-system", "n1", nil, ""},
		"another namespace":            {"shop", "", nil, `not be in namespace "shop"`},
		"another root":                 {"shop", "", func(w *fixture) { w.config(t, settings("rootNamespace: shop")) }, ""},
		"listed":                       {"shop", "", func(w *fixture) { w.config(t, settings("gatewayNamespaces: [shop]")) }, ""},
		"any":                          {"shop", "", func(w *fixture) { w.config(t, settings("gatewayNamespaces: ['*']")) }, ""},
		"listed without root": {
			"istio-system", "", func(w *fixture) { w.config(t, settings("gatewayNamespaces: [shop]")) },
			`not be in namespace "istio-system"`,
		},
		"of a named service":              {"shop", "", func(w *fixture) { w.network("n1", named) }, ""},
		"of a service with namespace":     {"shop", "", func(w *fixture) { w.network("n1", explicit) }, ""},
		"named for another network":       {"shop", "", func(w *fixture) { w.network("n2", named) }, `not be in namespace "shop"`},
		"another network by its own word": {"istio-system", "n2", nil, `network "n2"`},
		"another network, by registry": {"istio-system", "n2", func(w *fixture) {
			e := federation.Edit{Source: federation.ShardKey{Cluster: "c1", Provider: federation.Mock}}
			e.Workloads.Set = map[federation.WorkloadKey]*federation.Workload{{
				Namespace: "istio-system",
				Name:      "gw",
			}: {Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")}, Network: "n2", Labels: map[string]string{"istio": "eastwest"}}}
			w.apply(e)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "n1").attach("c2", "n2").config(t, eastWest).
				say("c1", webKey, web(mesh(at("10.1.0.1", 8080))...))
			if c.change != nil {
				c.change(w)
			}
			metadata := map[string]any{"CLUSTER_ID": "c1", "ROUTER_MODE": "sni-dnat", "LABELS": map[string]any{"istio": "eastwest"}}
			if c.network != "" {
				metadata["NETWORK"] = c.network
			}
			n := parse(t, fmt.Sprintf("router~10.0.0.9~gw.%s~%[1]s.svc.cluster.local", c.namespace), metadata)
			err := envoy.Serves(n, w.snapshot)
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("Serves says %v, want %q", err, c.why)
			}
			listens := len(build(t, envoy.ListenerType, n, w.snapshot)) > 0
			passes := len(bySNI(build(t, envoy.ClusterType, n, w.snapshot))) > 0
			if listens != (c.why == "") || passes != (c.why == "") {
				t.Errorf("it listens: %t, it has clusters by SNI: %t", listens, passes)
			}
		})
	}
}
