package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestG116SelectorsSeeLabelsOfTopology: objects of each kind that selects proxies select those of
// one cluster, which share nothing with others then.
func TestG116SelectorsSeeLabelsOfTopology(t *testing.T) {
	const mesh = "kind: MeshSettings\nmetadata: {name: default}\nspec: {envoyFilters: {namespaces: [shop]}}\n---\n"
	const labels = "{topology.istio.io/cluster: c1}"
	for kind, config := range map[string]string{
		"AuthorizationPolicy": "spec: {selector: {matchLabels: " + labels + "}}",
		"PeerAuthentication":  "spec: {selector: {matchLabels: " + labels + "}, mtls: {mode: STRICT}}",
		"Telemetry":           "spec: {selector: {matchLabels: " + labels + "}, accessLogging: [{}]}",
		"Sidecar":             "spec: {workloadSelector: {labels: " + labels + "}, egress: [{hosts: ['~/*']}]}",
		"EnvoyFilter": "spec: {workloadSelector: {labels: " + labels +
			"}, configPatches: [{applyTo: LISTENER, patch: {operation: MERGE, value: {stat_prefix: a}}}]}",
		"DestinationRule": "spec: {host: web.shop.svc.cluster.local, workloadSelector: {matchLabels: " + labels + "}}",
	} {
		t.Run(kind, func(t *testing.T) {
			w := twoShops().attach("c2", "").config(t, mesh+"kind: "+kind+"\nmetadata: {name: a, namespace: shop}\n"+config)
			var all [][]envoy.Facet
			for _, cluster := range []string{"c1", "c2"} {
				n := parse(t, "sidecar~10.0.0.8~a.shop~shop.svc.cluster.local", map[string]any{
					"CLUSTER_ID": cluster, "NETWORK": "n1", "LABELS": map[string]any{"app": "a", federation.LabelCluster: "c1"},
				})
				all = append(all, slices.Concat(envoy.Facets(envoy.ListenerType, n, w.snapshot), envoy.Facets(envoy.ClusterType, n, w.snapshot)))
			}
			texts := fmt.Sprint(all[0])
			if !strings.Contains(texts, "labels=topology.istio.io/cluster=c1") {
				t.Errorf("the label is in no facet of %s", texts)
			}
			if others := fmt.Sprint(all[1]); strings.Contains(others, "topology.istio.io/cluster=c1") {
				t.Errorf("a proxy of c2 has a label of c1: %s", others)
			}
			for have, want := range map[string]string{"Telemetry": "telemetry=shop/a", "EnvoyFilter": "patches=", "Sidecar": "egress=~"} {
				if has := strings.Contains(texts, want); kind == have && !has {
					t.Errorf("%s does not select the proxy of c1: %s", kind, texts)
				}
				if others := fmt.Sprint(all[1]); kind == have && strings.Contains(others, want) {
					t.Errorf("%s selects the proxy of c2: %s", kind, others)
				}
			}
		})
	}
}

// TestG116NetworksAndLocalitiesSelect: by what counts for the proxy, which a locality that it
// reports cannot widen to other labels.
func TestG116NetworksAndLocalitiesSelect(t *testing.T) {
	w := twoShops().config(t, `kind: VirtualService
metadata: {name: v, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - match: [{sourceLabels: {app: admin, topology.kubernetes.io/region: eu, topology.istio.io/network: default}}]
    route: [{destination: {host: web.shop.svc.cluster.local}}]`)
	for region, want := range map[string]string{
		"eu":             "topology.istio.io/network=default,topology.kubernetes.io/region=eu",
		"":               "topology.istio.io/network=default",
		"eu,app=admin":   "topology.istio.io/network=default",
		"eu,app=admin,x": "topology.istio.io/network=default",
	} {
		n := parse(t, "sidecar~10.0.0.8~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
		n.Locality.Region = region
		for _, f := range envoy.Facets(envoy.RouteType, n, w.snapshot) {
			if f.Labels != want {
				t.Errorf("in the region %q the labels are %q, want %q", region, f.Labels, want)
			}
		}
	}
}
