package validation

import (
	api "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation/config/schema"
)

// EnvoyFilter checks a spec of the kind.
func EnvoyFilter(_ string, f *api.EnvoyFilter) []Problem {
	at := spec
	found := problem(at.field("targetRefs"), schema.Forbidden, when(f.GetWorkloadSelector() != nil && len(f.GetTargetRefs()) > 0,
		"workloadSelector chooses the proxies: remove one of the two"))
	found = append(found, optional(at.field("workloadSelector"), f.GetWorkloadSelector(), workloadSelector)...)
	return append(found, each(at.field("configPatches"), f.GetConfigPatches(), by(patchRules))...)
}

type configPatch = api.EnvoyFilter_EnvoyConfigObjectPatch

var patchRules = []rule[*configPatch]{
	{"applyTo", schema.Required, func(p *configPatch) string {
		return when(p.GetApplyTo() == api.EnvoyFilter_INVALID, "say what is patched, such as HTTP_FILTER")
	}},
	{"patch", schema.Required, func(p *configPatch) string {
		return when(p.GetPatch() == nil, "say how it is patched: write operation and value")
	}},
	{"patch.operation", schema.Required, func(p *configPatch) string {
		return when(p.GetPatch() != nil && p.GetPatch().GetOperation() == api.EnvoyFilter_Patch_INVALID, "say how it is patched, such as MERGE")
	}},
	{"patch.value", schema.Required, func(p *configPatch) string {
		changes := p.GetPatch() != nil && p.GetPatch().GetOperation() != api.EnvoyFilter_Patch_REMOVE
		return when(changes && p.GetPatch().GetValue() == nil, "write the value; only REMOVE needs none")
	}},
	{"patch.value", schema.Invalid, patchValue},
	{"match.proxy.proxyVersion", schema.Invalid, func(p *configPatch) string {
		return regularExpression(p.GetMatch().GetProxy().GetProxyVersion())
	}},
	{"match", schema.Forbidden, func(p *configPatch) string {
		wants, known := matchOf[p.GetApplyTo()]
		has := objectMatch(p.GetMatch())
		return when(known && has != "" && has != wants, "%s is found by %s, not by %s: write %s", p.GetApplyTo(), wants, has, wants)
	}},
	{"patch.operation", schema.Forbidden, func(p *configPatch) string {
		inserts := p.GetPatch().GetOperation() == api.EnvoyFilter_Patch_INSERT_BEFORE ||
			p.GetPatch().GetOperation() == api.EnvoyFilter_Patch_INSERT_AFTER
		whole := p.GetApplyTo() == api.EnvoyFilter_CLUSTER || p.GetApplyTo() == api.EnvoyFilter_ROUTE_CONFIGURATION ||
			p.GetApplyTo() == api.EnvoyFilter_VIRTUAL_HOST
		return when(inserts && whole, "%s has no order: write ADD", p.GetApplyTo())
	}},
	{"match.listener.filterChain.filter", schema.Required, func(p *configPatch) string {
		filter := filterOf(p)
		return when(filter != nil && filter.GetName() == "", "a filter is found by its name: write it")
	}},
	{"match.listener.filterChain.filter.subFilter", schema.Required, func(p *configPatch) string {
		sub := filterOf(p).GetSubFilter()
		return when(sub != nil && sub.GetName() == "", "a filter is found by its name: write it")
	}},
	{"match.listener.filterChain.filter.subFilter", schema.Forbidden, func(p *configPatch) string {
		return when(filterOf(p).GetSubFilter() != nil && p.GetApplyTo() != api.EnvoyFilter_HTTP_FILTER,
			"%s is not within an HTTP filter: remove it, or write HTTP_FILTER", p.GetApplyTo())
	}},
	{"match.listener.filterChain.filter.subFilter", schema.Forbidden, func(p *configPatch) string {
		filter := filterOf(p)
		manager := filter.GetName() == httpConnectionManager || filter.GetName() == "envoy.http_connection_manager"
		return when(filter.GetSubFilter() != nil && filter.GetName() != "" && !manager, "%q has no HTTP filters: name the filter %s",
			filter.GetName(), httpConnectionManager)
	}},
}

// httpConnectionManager is the network filter that has the HTTP filters.
const httpConnectionManager = "envoy.filters.network.http_connection_manager"

// filterOf is the network filter by which a patch finds its object.
func filterOf(p *configPatch) *api.EnvoyFilter_ListenerMatch_FilterMatch {
	if p.GetApplyTo() == api.EnvoyFilter_LISTENER_FILTER || matchOf[p.GetApplyTo()] != "listener" {
		return nil
	}
	return p.GetMatch().GetListener().GetFilterChain().GetFilter()
}

// matchOf says by which part of a match an object is found.
var matchOf = map[api.EnvoyFilter_ApplyTo]string{
	api.EnvoyFilter_LISTENER: "listener", api.EnvoyFilter_FILTER_CHAIN: "listener", api.EnvoyFilter_NETWORK_FILTER: "listener",
	api.EnvoyFilter_HTTP_FILTER: "listener", api.EnvoyFilter_LISTENER_FILTER: "listener",
	api.EnvoyFilter_ROUTE_CONFIGURATION: "routeConfiguration", api.EnvoyFilter_VIRTUAL_HOST: "routeConfiguration",
	api.EnvoyFilter_HTTP_ROUTE: "routeConfiguration", api.EnvoyFilter_CLUSTER: "cluster",
}

func objectMatch(m *api.EnvoyFilter_EnvoyConfigObjectMatch) string {
	switch m.GetObjectTypes().(type) {
	case *api.EnvoyFilter_EnvoyConfigObjectMatch_Listener:
		return "listener"
	case *api.EnvoyFilter_EnvoyConfigObjectMatch_RouteConfiguration:
		return "routeConfiguration"
	case *api.EnvoyFilter_EnvoyConfigObjectMatch_Cluster:
		return "cluster"
	}
	return ""
}
