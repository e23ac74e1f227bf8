package kind

import (
	"cmp"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.EnvoyFilter]{
	kind:  federation.EnvoyFilterKind,
	names: envoyFilterNames,
	proxyLabels: func(s *networking.EnvoyFilter, add func(map[string]string)) {
		for _, labels := range selectedProxies(s) {
			add(labels)
		}
	},
	references: analysis.EnvoyFilter,
	check:      validation.EnvoyFilter,
})

// selectedProxies has the labels of each set of proxies that an EnvoyFilter is for.
func selectedProxies(s *networking.EnvoyFilter) []map[string]string {
	if len(s.GetTargetRefs()) == 0 {
		return []map[string]string{s.GetWorkloadSelector().GetLabels()}
	}
	var all []map[string]string
	for _, t := range s.GetTargetRefs() {
		if federation.IsGatewayAPI(t.GetGroup(), t.GetKind()) {
			all = append(all, map[string]string{federation.GatewayLabel: t.GetName()})
		}
	}
	return all
}

// envoyFilterNames are those under which proxies find what is for them, and builders what may
// patch a resource.
func envoyFilterNames(d Decoded, s *networking.EnvoyFilter) []string {
	var names []string
	for _, labels := range selectedProxies(s) {
		names = append(names, WorkloadsName(d.Key.Namespace, labels))
	}
	for _, p := range s.GetConfigPatches() {
		names = append(names, patchNames(d.Key.Namespace, p)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// patchNames are those of the resources that may be patched.
func patchNames(namespace string, p *networking.EnvoyFilter_EnvoyConfigObjectPatch) []string {
	switch p.GetApplyTo() {
	case networking.EnvoyFilter_CLUSTER:
		match := p.GetMatch().GetCluster()
		if match.GetName() == "" && match.GetService() != "" {
			return []string{federation.PatchName(namespace, federation.PatchedHost, match.GetService())}
		}
		return []string{federation.PatchName(namespace, federation.PatchedCluster, cmp.Or(match.GetName(), "*"))}
	case networking.EnvoyFilter_ROUTE_CONFIGURATION, networking.EnvoyFilter_VIRTUAL_HOST, networking.EnvoyFilter_HTTP_ROUTE:
		return []string{federation.PatchName(namespace, federation.PatchedRoutes, cmp.Or(p.GetMatch().GetRouteConfiguration().GetName(), "*"))}
	case networking.EnvoyFilter_LISTENER, networking.EnvoyFilter_FILTER_CHAIN, networking.EnvoyFilter_LISTENER_FILTER,
		networking.EnvoyFilter_NETWORK_FILTER, networking.EnvoyFilter_HTTP_FILTER:
		return []string{federation.PatchName(namespace, federation.PatchedListener, cmp.Or(p.GetMatch().GetListener().GetName(), "*"))}
	}
	return nil
}
