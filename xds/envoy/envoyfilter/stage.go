package envoyfilter

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Apply returns a resource with the EnvoyFilters applied that select the view's proxies: the resource itself
// where they change nothing, nil where they remove it. It notes which patches matched, and which
// ones were excluded.
func Apply(v *facet.View, m proto.Message) proto.Message {
	if v.Facet.Extras().Patches == "" || v.Facet.Has(node.Added) || m == nil {
		return m
	}
	now, outcomes := Patched(m, patchesFor(v, m))
	for _, o := range outcomes {
		if !o.Matched {
			continue
		}
		v.LeaveOut(resource.Reason{Code: resource.ReasonPatchMatched, Cause: o.Patch.Object, Message: o.Patch.Field()})
		if o.Err != nil {
			v.LeaveOut(resource.Reason{
				Code: resource.ReasonPatchInvalid, Cause: o.Patch.Object,
				Message: fmt.Sprintf("%s is excluded from %q: %v", o.Patch.Field(), nameOf(m), o.Err),
			})
		}
	}
	return now
}

// Steps tells of each patch that changes the resource, with the resource before and after it.
func Steps(v *facet.View, m proto.Message, tell func(p Patch, before, after proto.Message)) {
	if v.Facet.Extras().Patches != "" && m != nil {
		oneByOne(m, readAll(patchesFor(v, m)), tell)
	}
}

// patchesFor are the patches for the view's proxies that may change the resource, in their
// order. Only their objects are read: what another one says has no resource built again.
func patchesFor(v *facet.View, m proto.Message) []Patch {
	refs := node.PatchesOf(v.Facet)
	found := map[federation.ObjectKey]*federation.Object{}
	var namespaces []string
	for _, ref := range refs {
		if slices.Contains(namespaces, ref.Object.Namespace) {
			continue
		}
		namespaces = append(namespaces, ref.Object.Namespace)
		for _, name := range namesFor(ref.Object.Namespace, m) {
			for o := range v.Reader.Objects().Named(federation.EnvoyFilterKind, name) {
				found[o.Key] = o
			}
		}
	}
	var patches []Patch
	for _, ref := range refs {
		if o := found[ref.Object]; o != nil {
			patches = append(patches, patchesOf(o, ref.Indexes)...)
		}
	}
	return patches
}

func patchesOf(o *federation.Object, indexes []int) []Patch {
	spec, _ := o.Spec.(*api.EnvoyFilter)
	var patches []Patch
	for _, i := range indexes {
		if i < len(spec.GetConfigPatches()) { // the facet may be of another snapshot
			patches = append(patches, Patch{Object: o.Key, Index: i, Spec: spec.GetConfigPatches()[i]})
		}
	}
	return patches
}

// namesFor are the names under which EnvoyFilters are found that may patch the resource.
func namesFor(namespace string, m proto.Message) []string {
	name := func(of, name string) string { return federation.PatchName(namespace, of, name) }
	switch m := m.(type) {
	case *clusterv3.Cluster:
		names := []string{name(federation.PatchedCluster, "*"), name(federation.PatchedCluster, m.GetName())}
		if id, ok := clusterID(m.GetName()); ok {
			names = append(names, name(federation.PatchedHost, string(id.Host)))
		}
		return names
	case *routev3.RouteConfiguration:
		return []string{name(federation.PatchedRoutes, "*"), name(federation.PatchedRoutes, m.GetName())}
	case *listenerv3.Listener:
		names := []string{
			name(federation.PatchedListener, "*"), name(federation.PatchedListener, m.GetName()),
			name(federation.PatchedRoutes, "*"),
		}
		for _, inline := range inlineRoutes(m) {
			names = append(names, name(federation.PatchedRoutes, inline))
		}
		return names
	}
	return nil
}

// inlineRoutes are the names of routes within a listener, the hub's and Istio's.
func inlineRoutes(l *listenerv3.Listener) []string {
	var names []string
	for _, chain := range chainsOf(l) {
		for _, f := range chain.GetFilters() {
			manager := &hcmv3.HttpConnectionManager{}
			if !f.GetTypedConfig().MessageIs(manager) || f.GetTypedConfig().UnmarshalTo(manager) != nil || manager.GetRouteConfig() == nil {
				continue
			}
			own := manager.GetRouteConfig().GetName()
			names = append(names, own, fmt.Sprintf("inbound|%d||", parseRoutes(own).port))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
