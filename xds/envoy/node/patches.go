package node

import (
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// patchLists has the patches for a proxy, by the facets whose resources they may change: a
// patch is in no other list, so that it splits no other facet.
type patchLists struct {
	static, clusters          string // of clusters that all sidecars have, and of services
	inbound, outbound         string // of listeners, those of inline routes included
	routes                    string
	newClusters, newListeners string // that are added
	// claimed are those that were found by what the proxy says about itself and nothing confirms.
	claimed string
}

// markClusterPatches notes in the facets which patches of clusters are for them.
func markClusterPatches(_ Node, c effectiveConfig, facets []Facet) {
	markPatches(facets, uniform, c.patches.static, c.patches.clusters)
}

func markListenerPatches(_ Node, c effectiveConfig, facets []Facet) {
	markPatches(facets, Inbound, c.patches.inbound, c.patches.outbound)
}

func markRoutePatches(_ Node, c effectiveConfig, facets []Facet) {
	markPatches(facets, 0, "", c.patches.routes)
}

// markPatches notes one list in the facets that have the trait, and the other in the others.
func markPatches(facets []Facet, trait Trait, with, without string) {
	for i := range facets {
		patches := without
		if facets[i].Has(trait) {
			patches = with
		}
		if patches != "" && facets[i].Has(patched) {
			facets[i].edit(func(e *Extras) { e.Patches = patches })
		}
	}
}

// patchedFacets are those of what EnvoyFilters add.
var patchedFacets = facets{
	resource.ClusterType: func(all []Facet, _ Node, c effectiveConfig) []Facet { return appendPatched(all, c.patches.newClusters) },
	resource.ListenerType: func(all []Facet, _ Node, c effectiveConfig) []Facet {
		return appendPatched(all, c.patches.newListeners)
	},
}

func appendPatched(all []Facet, added string) []Facet {
	if added == "" {
		return all
	}
	return append(all, Facet{Scope: ScopePatched, extras: Extras{Patches: added}.ref()})
}

// PatchRef names patches of one EnvoyFilter by their index.
type PatchRef struct {
	Object  federation.ObjectKey
	Indexes []int
}

// PatchesOf are the patches for the facet's proxies, in the order in which they are applied.
func PatchesOf(f Facet) []PatchRef {
	var refs []PatchRef
	for text := range strings.SplitSeq(f.Extras().Patches, ",") {
		object, indexes, ok := strings.Cut(text, ":")
		namespace, name, _ := strings.Cut(object, "/")
		if !ok {
			continue
		}
		ref := PatchRef{Object: federation.EnvoyFilterKind.Key(namespace, name)}
		if own, is := strings.CutSuffix(name, ofCluster); is {
			ref.Object.Name, ref.Object.Cluster = own, f.Objects
		}
		for number := range strings.SplitSeq(indexes, ".") {
			if i, err := strconv.Atoi(number); err == nil {
				ref.Indexes = append(ref.Indexes, i)
			}
		}
		refs = append(refs, ref)
	}
	return refs
}

// ofCluster marks an object for the proxies of one cluster alone.
const ofCluster = "@"

// add adds the patches of an EnvoyFilter that are for the proxy.
func (p *patchLists) add(n Node, o *federation.Object) {
	name := o.Key.Namespace + "/" + o.Key.Name
	if o.Key.Cluster != "" {
		name += ofCluster
	}
	begun := map[*string]bool{}
	for i, patch := range o.Spec.(*networking.EnvoyFilter).GetConfigPatches() {
		matched, claims := meets(n, patch.GetMatch())
		if !matched {
			continue
		}
		lists := p.listsFor(patch)
		if claims {
			lists = append(lists, &p.claimed)
		}
		for _, list := range lists {
			appendPatch(list, name, i, !begun[list])
			begun[list] = true
		}
	}
}

func appendPatch(list *string, name string, index int, first bool) {
	switch {
	case !first:
		*list += "."
	case *list != "":
		*list += "," + name + ":"
	default:
		*list = name + ":"
	}
	*list += strconv.Itoa(index)
}

// listsFor are the lists in which the patch belongs.
func (p *patchLists) listsFor(patch *networking.EnvoyFilter_EnvoyConfigObjectPatch) []*string {
	context := patch.GetMatch().GetContext()
	added := patch.GetPatch().GetOperation() == networking.EnvoyFilter_Patch_ADD
	switch patch.GetApplyTo() {
	case networking.EnvoyFilter_CLUSTER:
		switch {
		case added:
			return []*string{&p.newClusters}
		case context == networking.EnvoyFilter_SIDECAR_INBOUND:
			return []*string{&p.static}
		}
		return []*string{&p.static, &p.clusters}
	case networking.EnvoyFilter_ROUTE_CONFIGURATION, networking.EnvoyFilter_VIRTUAL_HOST, networking.EnvoyFilter_HTTP_ROUTE:
		return byDirection(context, &p.inbound, &p.routes)
	case networking.EnvoyFilter_LISTENER:
		if added {
			return []*string{&p.newListeners}
		}
		return byDirection(context, &p.inbound, &p.outbound)
	case networking.EnvoyFilter_FILTER_CHAIN, networking.EnvoyFilter_LISTENER_FILTER, networking.EnvoyFilter_NETWORK_FILTER,
		networking.EnvoyFilter_HTTP_FILTER:
		return byDirection(context, &p.inbound, &p.outbound)
	}
	return nil
}

func byDirection(context networking.EnvoyFilter_PatchContext, inbound, outbound *string) []*string {
	switch context {
	case networking.EnvoyFilter_SIDECAR_INBOUND:
		return []*string{inbound}
	case networking.EnvoyFilter_ANY:
		return []*string{inbound, outbound}
	}
	return []*string{outbound}
}
