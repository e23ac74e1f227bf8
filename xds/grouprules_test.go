package xds

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// facetsWithRules are those of the node with and without rules of its own.
func facetsWithRules(kind envoy.Type, n envoy.Node) []envoy.Facet {
	facets := envoy.Facets(kind, n, federation.Empty())
	ruled, _ := federation.Next(federation.Empty(), ruleEdit("n1", "r1", &networking.DestinationRule{Host: "a.svc"}, "{}"))
	for _, f := range envoy.Facets(kind, n, ruled) {
		if !slices.Contains(facets, f) {
			facets = append(facets, f)
		}
	}
	return facets
}

func ruleEdit(namespace, name string, spec *networking.DestinationRule, digest string) federation.Edit {
	k := federation.ObjectKey{Group: "networking.istio.io", Kind: "DestinationRule", Namespace: namespace, Name: name}
	if spec == nil {
		return federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{k}}}
	}
	o := &federation.Object{Key: k, Digest: digest, Names: []string{spec.GetHost()}, Spec: spec}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{k: o}}}
}

// drawRule adds, changes or removes a DestinationRule, or moves the root
// namespace.
func drawRule(t *rapid.T) federation.Edit {
	if rapid.IntRange(0, 9).Draw(t, "mesh") == 0 {
		mesh := &federation.MeshSettings{RootNamespace: rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "root")}
		exports := rapid.SampledFrom([][]string{nil, {"*"}, {"."}, {"n1"}, {"~"}})
		mesh.DefaultServiceExportTo, mesh.DefaultVirtualServiceExportTo = exports.Draw(t, "services"), exports.Draw(t, "routes")
		mesh.DefaultDestinationRuleExportTo = exports.Draw(t, "rules")
		o := &federation.Object{Key: federation.MeshSettingsKey, Digest: fmt.Sprintf("%+v", *mesh), Spec: mesh}
		return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
			*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}}
	}
	if rapid.IntRange(0, 2).Draw(t, "routes") == 0 {
		return drawRoutes(t)
	}
	namespace := rapid.SampledFrom([]string{"n1", "n2", "istio-system"}).Draw(t, "rule namespace")
	name := rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rule")
	if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
		return ruleEdit(namespace, name, nil, "")
	}
	json := fmt.Sprintf(`{"host": %q, "exportTo": %s, "trafficPolicy": {"loadBalancer": {"simple": %q}}, "subsets": [%s]}`,
		rapid.SampledFrom([]string{"a.svc", "b.svc", "*.svc", "*"}).Draw(t, "rule host"),
		rapid.SampledFrom([]string{"[]", `["."]`, `["n1"]`, `["*"]`}).Draw(t, "rule exportTo"),
		rapid.SampledFrom([]string{"UNSPECIFIED", "RANDOM", "PASSTHROUGH"}).Draw(t, "balancer"),
		rapid.SampledFrom([]string{
			"", `{"name": "v0", "labels": {"version": "v0"}}`, `{"name": "v0", "labels": {"version": "v1"}}, {"name": "v1"}`,
			`{"name": "v1", "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}}}`,
		}).Draw(t, "subsets"))
	spec := &networking.DestinationRule{}
	if err := protojson.Unmarshal([]byte(json), spec); err != nil {
		t.Fatalf("%v in %s", err, json)
	}
	return ruleEdit(namespace, name, spec, json)
}

// drawRoutes adds, changes or removes a VirtualService.
func drawRoutes(t *rapid.T) federation.Edit {
	k := federation.ObjectKey{
		Group: "networking.istio.io", Kind: "VirtualService",
		Namespace: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "routes namespace"),
		Name:      rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "routes name"),
	}
	if rapid.IntRange(0, 3).Draw(t, "no routes") == 0 {
		return federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Gone: []federation.ObjectKey{k}}}
	}
	json := fmt.Sprintf(`{"hosts": [%q], "exportTo": %s, "http": [{"route": [{"destination": {"host": %q, "subset": %q}}]}]}`,
		rapid.SampledFrom([]string{"a.svc", "*.svc", "front.example", "c.svc"}).Draw(t, "routed host"),
		rapid.SampledFrom([]string{"[]", `["."]`}).Draw(t, "routes exportTo"),
		rapid.SampledFrom([]string{"a.svc", "b.svc", "nowhere.svc"}).Draw(t, "destination"),
		rapid.SampledFrom([]string{"", "v0"}).Draw(t, "to subset"))
	spec := &networking.VirtualService{}
	if err := protojson.Unmarshal([]byte(json), spec); err != nil {
		t.Fatalf("%v in %s", err, json)
	}
	o := &federation.Object{Key: k, Digest: json, Names: spec.GetHosts(), Spec: spec}
	return federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{k: o}}}
}
