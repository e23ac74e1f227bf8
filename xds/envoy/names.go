package envoy

import (
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Fixed returns the names that exist for everyone with this facet, whatever the
// services. When what it read changes, it is to be asked again, and every name
// that it gave before or gives now must be built again.
func Fixed(t resource.Type, f node.Facet, r *federation.Reader) []string {
	fixed := scopeOf(f).fixed
	if fixed == nil {
		return nil
	}
	return fixed(t, f, r)
}

// Contributes returns the names that exist because of one service, sorted. It
// depends on the service's spec, on the objects that Speaks tells of, on the specs of
// other services of the hostname and, where ContributesByEndpoint says so, on the
// service's endpoints.
//
// When a service comes, goes or changes its spec, every name that it contributed
// before or contributes now must be built again, even if the name existed and
// other services contribute it too: who wins a name may have changed.
func Contributes(t resource.Type, f node.Facet, s *federation.Service, snapshot *federation.Snapshot) []string {
	if !f.Covers(s) || !service.HasPlace(f, s, snapshot) {
		return nil
	}
	if f.Scope == node.ScopePrivate && node.IsPublic(s) && !service.MayDiffer(f, s.Key.Hostname, snapshot) {
		return nil // as everyone has it
	}
	if f.Balanced && !destination.CallersChoose(s, snapshot) {
		return nil
	}
	of := scopeOf(f).names
	if of == nil {
		return nil
	}
	names := of(t, f, s, snapshot)
	slices.Sort(names)
	return slices.Compact(names)
}

// ContributesByEndpoint tells that the names that exist because of the service
// depend on its endpoints: listeners of a headless service are at its pods.
func ContributesByEndpoint(t resource.Type, f node.Facet, s *federation.Service) bool {
	return t == resource.ListenerType && f.Offers() && service.IsHeadless(s)
}

// appendSubsets adds the names of the clusters' subsets, impossible ones excepted.
func appendSubsets(clusters []string, host federation.Hostname, subsets []string) []string {
	for _, cluster := range slices.Clone(clusters) {
		id, _ := resource.ParseClusterName(cluster)
		for _, subset := range subsets {
			if name := resource.SubsetClusterName(host, id.Port, subset); resource.ValidateName(name) == nil {
				clusters = append(clusters, name)
			}
		}
	}
	return clusters
}

// Speaks returns the hostnames and wildcards of the services to whose names the
// object contributes.
func Speaks(o *federation.Object) []string {
	if rule, ok := destinationrule.Spec(o); ok && (len(rule.GetSubsets()) > 0 || destinationrule.Ejects(rule) || destinationrule.LetsChoose(rule)) {
		return destinationrule.Hosts(o) // subsets have clusters of their own, and places and gateways may matter
	}
	if o.Key == federation.MeshSettingsKey {
		return []string{"*"} // places may matter anywhere
	}
	return nil
}

// Names returns all names of the facet, sorted: the definition from nothing,
// with which whatever is kept incrementally must agree. Build may still find
// that another facet has the better claim to a name, and return nil.
func Names(t resource.Type, f node.Facet, s *federation.Snapshot) []string {
	found := map[string]bool{}
	for _, name := range Fixed(t, f, s.Read()) {
		found[name] = true
	}
	for svc := range s.Services() {
		for _, name := range Contributes(t, f, svc, s) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
