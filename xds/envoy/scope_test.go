package envoy

import (
	"net/netip"
	"testing"

	networking "istio.io/api/networking/v1"
	envoyfilters "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Whatever facet a node has for a type, its scope builds that type; and nothing is in
// the table that no node has.
func TestEveryFacetHasARow(t *testing.T) {
	nodes := []node.Node{
		{Type: node.Sidecar, Capture: true, DNSCapture: true, Identity: true, HTTPProxyPort: 15080},
		{Type: node.Sidecar, Capture: true, DNSCapture: true, Identity: true, Agent: true, AgentNames: true},
		{Type: node.Router},
		{Type: node.Router, RouterMode: node.SNIDNAT},
		{Type: node.Sidecar, GRPC: true},
	}
	objects, settings := map[federation.ObjectKey]*federation.Object{}, &federation.MeshSettings{GatewayNamespaces: []string{"*"}}
	settings.EnvoyFilters.Namespaces = []string{"shop"}
	for key, spec := range map[federation.ObjectKey]any{
		{Group: node.SidecarKind.Group, Kind: node.SidecarKind.Name, Namespace: "limited", Name: "default"}: &networking.Sidecar{
			Egress: []*networking.IstioEgressListener{
				{Hosts: []string{"./*"}}, {Hosts: []string{"./*"}, Bind: "127.0.0.1", Port: &networking.SidecarPort{Number: 9080, Protocol: "HTTP"}},
			},
			Ingress: []*networking.IstioIngressListener{{Port: &networking.SidecarPort{Number: 80}}},
		},
		{
			Group: destinationrule.Kind.Group, Kind: destinationrule.Kind.Name, Namespace: "limited",
			Name: "own",
		}: &networking.DestinationRule{Host: "web", ExportTo: []string{"."}},
		{
			Group: node.EnvoyFilterKind.Group, Kind: node.EnvoyFilterKind.Name, Namespace: "shop",
			Name: "adds",
		}: &envoyfilters.EnvoyFilter{ConfigPatches: []*envoyfilters.EnvoyFilter_EnvoyConfigObjectPatch{
			{ApplyTo: envoyfilters.EnvoyFilter_CLUSTER, Patch: &envoyfilters.EnvoyFilter_Patch{Operation: envoyfilters.EnvoyFilter_Patch_ADD}},
			{ApplyTo: envoyfilters.EnvoyFilter_LISTENER, Patch: &envoyfilters.EnvoyFilter_Patch{Operation: envoyfilters.EnvoyFilter_Patch_ADD}},
		}},
		federation.MeshSettingsKey: settings,
	} {
		objects[key] = &federation.Object{Key: key, Spec: spec, Digest: "1", Names: []string{federation.WorkloadsName + key.Namespace}}
	}
	e := federation.Edit{Source: federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}}
	e.Objects.Set = objects
	s, _ := federation.Next(federation.Empty(), e)
	type cell struct {
		scope node.Scope
		grpc  bool
		of    resource.Type
	}
	found := map[cell]bool{}
	for _, n := range nodes {
		for _, namespace := range []string{"shop", "limited"} {
			n.Cluster, n.Namespace, n.Addresses = "c1", namespace, []netip.Addr{netip.MustParseAddr("10.0.0.1")}
			for _, row := range resource.Types {
				of := row.Type
				for _, f := range node.Facets(of, n, s) {
					found[cell{f.Scope, f.GRPC, of}] = true
					if scopeOf(f).build[of] == nil {
						t.Errorf("facet %s of a %s has no row that builds %s", f, n.Type, of)
					}
				}
			}
		}
	}
	for grpc, rows := range map[bool]map[node.Scope]scope{false: scopes, true: grpcScopes} {
		for of, row := range rows {
			for typ := range row.build {
				if !found[cell{of, grpc, typ}] {
					t.Errorf("the scope %s (gRPC: %t) builds %s, and no node has it", of, grpc, typ)
				}
			}
		}
	}
	for of := node.ScopeStatic; of.String() != ""; of++ {
		if len(scopes[of].build)+len(grpcScopes[of].build) == 0 {
			t.Errorf("the scope %s has no row that builds anything", of)
		}
	}
}
