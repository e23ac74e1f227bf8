package node

import (
	"fmt"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"
	selection "istio.io/api/type/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// filter is an EnvoyFilter with a patch of clusters, as configuration indexes it.
func filter(namespace, name string, priority int32, label string, proxy *networking.EnvoyFilter_ProxyMatch,
	gateways ...string,
) *federation.Object {
	spec := &networking.EnvoyFilter{Priority: priority, ConfigPatches: []*networking.EnvoyFilter_EnvoyConfigObjectPatch{{
		ApplyTo: networking.EnvoyFilter_CLUSTER, Match: &networking.EnvoyFilter_EnvoyConfigObjectMatch{Proxy: proxy},
		Patch: &networking.EnvoyFilter_Patch{Operation: networking.EnvoyFilter_Patch_MERGE},
	}}}
	o := &federation.Object{
		Key:  federation.EnvoyFilterKind.Key(namespace, name),
		Spec: spec, Created: time.Unix(1, 0), Names: []string{federation.WorkloadsName + namespace},
	}
	if label != "" {
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": label}}
		o.Names, o.ProxyLabels = []string{federation.WorkloadsName + namespace + "/app=" + label}, []string{"app"}
	}
	for _, g := range gateways {
		spec.TargetRefs = append(spec.TargetRefs, &selection.PolicyTargetReference{Group: "gateway.networking.k8s.io", Kind: "Gateway", Name: g})
		o.Names, o.ProxyLabels = []string{federation.WorkloadsName + namespace + "/" + federation.GatewayLabel + "=" + g},
			[]string{federation.GatewayLabel}
	}
	return o
}

// TestK32WhoseEnvoyFiltersAProxyGets: those of enabled namespaces, of the root namespace first, then
// by priority and age; of others none. Version and metadata of the proxy decide, too.
func TestK32WhoseEnvoyFiltersAProxyGets(t *testing.T) {
	old := filter("shop", "zz-old", 0, "", nil)
	old.Created = time.Unix(0, 0)
	objects := []*federation.Object{
		filter("istio-system", "root", 5, "", nil), filter("shop", "last", 7, "", nil), old, filter("shop", "first", -1, "web", nil),
		filter("shop", "not-mine", 0, "db", nil), filter("bank", "other-namespace", 0, "", nil), filter("off", "own", 0, "", nil),
		filter("shop", "version", 0, "", &networking.EnvoyFilter_ProxyMatch{ProxyVersion: `^1\.2[0-9]`}),
		filter("shop", "old-version", 0, "", &networking.EnvoyFilter_ProxyMatch{ProxyVersion: `^1\.9`}),
		filter("shop", "tier", 0, "", &networking.EnvoyFilter_ProxyMatch{Metadata: map[string]string{"TIER": "gold"}}),
		filter("shop", "no-tier", 0, "", &networking.EnvoyFilter_ProxyMatch{Metadata: map[string]string{"TIER": "old"}}),
		filter("shop", "gateway", 0, "", nil, "front"),
	}
	settings := &federation.MeshSettings{}
	settings.EnvoyFilters.Namespaces = []string{"istio-system", "shop", "bank"}
	objects = append(objects, &federation.Object{Key: federation.MeshSettingsKey, Spec: settings})
	set := map[federation.ObjectKey]*federation.Object{}
	for _, o := range objects {
		set[o.Key] = o
	}
	s, _ := federation.Next(federation.Empty(), federation.Edit{Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: set}})
	for id, want := range map[string]string{
		"sidecar~10.0.0.1~web.shop~shop.svc.cluster.local": "istio-system/root:0,shop/first:0,shop/zz-old:0,shop/tier:0,shop/version:0,shop/last:0",
		"router~10.0.0.2~gw.shop~shop.svc.cluster.local":   "istio-system/root:0,shop/zz-old:0,shop/gateway:0,shop/tier:0,shop/version:0,shop/last:0",
		"sidecar~10.0.0.3~web.off~off.svc.cluster.local":   "istio-system/root:0",
	} {
		labels := map[string]any{"app": "web"}
		if id[0] == 'r' {
			labels = map[string]any{federation.GatewayLabel: "front"}
		}
		metadata, err := structpb.NewStruct(map[string]any{"ISTIO_VERSION": "1.27.1", "TIER": "gold", "LABELS": labels})
		if err != nil {
			t.Fatal(err)
		}
		n, err := ParseNode(&corev3.Node{Id: id, Metadata: metadata}, Given{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Facets(resource.ClusterType, n, s) {
			if f.Extras().Patches != want {
				t.Errorf("%s, %s:\n%s, want\n%s", id, f.Scope, f.Extras().Patches, want)
			}
		}
		for _, of := range []resource.Type{resource.ListenerType, resource.RouteType, resource.EndpointType} {
			for _, f := range Facets(of, n, s) {
				if f.Extras().Patches != "" {
					t.Errorf("patches of clusters are part of %s of %s", f, of)
				}
			}
		}
		if got := fmt.Sprint(len(PatchesOf(Facet{extras: Extras{Patches: want}.ref()}))); got == "0" {
			t.Errorf("%q has no patches", want)
		}
	}
}
