package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// limitRule is a rule that is known by the limit that it sets.
func limitRule(namespace, host string, limit int, more string) string {
	return fmt.Sprintf("kind: DestinationRule\nmetadata: {name: r%d, namespace: %s, creationTimestamp: \"2026-01-01T00:00:%02dZ\"}\n"+
		"spec: {host: \"%s\", trafficPolicy: {connectionPool: {tcp: {maxConnections: %d}}}%s}", limit, namespace, limit, host, limit, more)
}

func limitOf(t *testing.T, n envoy.Node, s *federation.Snapshot) uint32 {
	t.Helper()
	c, _ := find[*clusterv3.Cluster](t, build(t, envoy.ClusterType, n, s), webCluster)
	if limit := c.GetCircuitBreakers().GetThresholds()[0].GetMaxConnections().GetValue(); limit < 1000 {
		return limit
	}
	return 0
}

const webHost = "web.shop.svc.cluster.local"

// Which rule holds for a service of the namespace shop, for callers there, in
// another namespace, with a label, and in the root namespace; 0: none.
func TestRuleIsTheOneThatIstioWouldTake(t *testing.T) {
	inShop := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	inBank := parse(t, "sidecar~10.0.0.9~b.bank~bank.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	till := parse(t, "sidecar~10.0.0.9~t.bank~bank.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"app": "till"}})
	inRoot := parse(t, "sidecar~10.0.0.9~r.istio-system~istio-system.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	onlyTill := `, workloadSelector: {matchLabels: {app: till}}`
	for name, c := range map[string]struct {
		rules []string
		want  [4]uint32 // shop, bank, till, root
	}{
		"none":                     {nil, [4]uint32{}},
		"service's":                {[]string{limitRule("shop", webHost, 1, "")}, [4]uint32{1, 1, 1, 1}},
		"stranger's":               {[]string{limitRule("other", webHost, 1, "")}, [4]uint32{}},
		"caller's before":          {[]string{limitRule("shop", webHost, 1, ""), limitRule("bank", webHost, 2, "")}, [4]uint32{1, 2, 2, 1}},
		"caller's wildcard before": {[]string{limitRule("shop", webHost, 1, ""), limitRule("bank", "*.local", 2, "")}, [4]uint32{1, 2, 2, 1}},
		"root's":                   {[]string{limitRule("istio-system", "*", 1, "")}, [4]uint32{1, 1, 1, 1}},
		"root's last": {
			[]string{limitRule("istio-system", "*", 1, ""), limitRule("shop", "*.shop.svc.cluster.local", 2, "")},
			[4]uint32{2, 2, 2, 2},
		},
		"root's own": {
			[]string{limitRule("istio-system", webHost, 1, `, exportTo: ["."]`), limitRule("shop", webHost, 2, "")},
			[4]uint32{2, 2, 2, 1},
		},
		"most specific": {[]string{
			limitRule("shop", "*.local", 1, ""), limitRule("shop", webHost, 2, ""),
			limitRule("shop", "*.shop.svc.cluster.local", 3, ""),
		}, [4]uint32{2, 2, 2, 2}},
		"private": {[]string{limitRule("shop", webHost, 1, `, exportTo: ["."]`)}, [4]uint32{1, 0, 0, 0}},
		"private, else wide": {
			[]string{limitRule("shop", webHost, 1, `, exportTo: ["."]`), limitRule("shop", "*.local", 2, "")},
			[4]uint32{1, 2, 2, 2},
		},
		"to one namespace":        {[]string{limitRule("shop", webHost, 1, `, exportTo: [bank]`)}, [4]uint32{0, 1, 1, 0}},
		"to one, from the root":   {[]string{limitRule("istio-system", "*", 1, `, exportTo: [bank]`)}, [4]uint32{0, 1, 1, 0}},
		"stranger's to one":       {[]string{limitRule("other", webHost, 1, `, exportTo: [bank]`)}, [4]uint32{}},
		"oldest":                  {[]string{limitRule("shop", webHost, 2, ""), limitRule("shop", webHost, 1, "")}, [4]uint32{1, 1, 1, 1}},
		"selected":                {[]string{limitRule("shop", webHost, 1, ""), limitRule("bank", webHost, 2, onlyTill)}, [4]uint32{1, 1, 2, 1}},
		"selected before general": {[]string{limitRule("bank", webHost, 1, ""), limitRule("bank", webHost, 2, onlyTill)}, [4]uint32{0, 1, 2, 0}},
		"selects at home only":    {[]string{limitRule("shop", webHost, 1, onlyTill)}, [4]uint32{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := twoShops()
			if len(c.rules) > 0 {
				w.config(t, strings.Join(c.rules, "\n---\n"))
			}
			for i, n := range []envoy.Node{inShop, inBank, till, inRoot} {
				if got := limitOf(t, n, w.snapshot); got != c.want[i] {
					t.Errorf("%s has the limit %d, want %d", []string{"shop", "bank", "till", "root"}[i], got, c.want[i])
				}
				checkReferences(t, n, buildAll(t, n, w.snapshot))
			}
		})
	}
}

// A rule for one namespace does not take the shared build from the others.
func TestNamespacesWithoutRulesShareTheirClusters(t *testing.T) {
	bank := parse(t, "sidecar~10.0.0.9~b.bank~bank.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	shop := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	w := twoShops().config(t, limitRule("bank", webHost, 2, ""))
	own := func(n envoy.Node) (names []string) {
		for _, f := range envoy.Facets(envoy.ClusterType, n, w.snapshot) {
			for _, name := range envoy.Names(envoy.ClusterType, f, w.snapshot) {
				m, _, err := envoy.Build(envoy.ClusterType, name, f, w.snapshot.Read())
				if err == nil && m != nil && f.Scope == node.ScopeNamespaced {
					names = append(names, name)
				}
			}
		}
		return names
	}
	if got := own(bank); !slices.Equal(got, []string{webCluster}) {
		t.Errorf("bank has %q for itself", got)
	}
	if got := own(shop); got != nil {
		t.Errorf("shop has %q for itself", got)
	}
}

// A namespace may cut the same service into subsets of its own.
func TestSubsetsOfACallersNamespace(t *testing.T) {
	bank := parse(t, "sidecar~10.0.0.9~b.bank~bank.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	shop := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	shard := web(at("10.0.0.1", 8080), at("10.0.0.2", 8080))
	shard.Endpoints[0].Labels, shard.Endpoints[1].Labels = map[string]string{"v": "1"}, map[string]string{"v": "2"}
	w := newFixture().attach("c1", "").say("c1", webKey, shard).config(t, `kind: DestinationRule
metadata: {name: r, namespace: shop}
spec: {host: `+webHost+`, subsets: [{name: best, labels: {v: "1"}}]}
---
kind: DestinationRule
metadata: {name: r, namespace: bank}
spec: {host: `+webHost+`, subsets: [{name: best, labels: {v: "2"}}, {name: worst, labels: {v: "1"}}]}`)
	for _, c := range []struct {
		node   envoy.Node
		subset string
		want   string
	}{{shop, "best", "10.0.0.1"}, {bank, "best", "10.0.0.2"}, {bank, "worst", "10.0.0.1"}} {
		built := buildAll(t, c.node, w.snapshot)
		checkReferences(t, c.node, built)
		a, _ := find[*endpointv3.ClusterLoadAssignment](t, built[envoy.EndpointType], "outbound|80|"+c.subset+"|"+webHost)
		if got := a.String(); !strings.Contains(got, c.want) || len(a.GetEndpoints()) != 1 {
			t.Errorf("the subset %s is %s, want %s", c.subset, got, c.want)
		}
	}
	if names := namesOf(build(t, envoy.ClusterType, shop, w.snapshot)); slices.Contains(names, "outbound|80|worst|"+webHost) {
		t.Error("shop has a subset of another namespace")
	}
}
