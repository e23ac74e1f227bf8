package envoy

import (
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Fixed returns the names that exist for everyone with this facet, whatever the
// services.
func Fixed(t resource.Type, f node.Facet, r *federation.Reader) []string {
	fixed := contentOf(f)[t].fixed
	if fixed == nil {
		return nil
	}
	return fixed(f, r.For(f.Objects))
}

// Contributed reports whether services contribute names at all to those of the type for the facet.
func Contributed(t resource.Type, f node.Facet) bool { return contentOf(f)[t].names != nil }

// Contributes returns the names that exist because of one service, sorted.
func Contributes(t resource.Type, f node.Facet, s *federation.Service, r *federation.Reader) []string {
	of := contentOf(f)[t].names
	if of == nil {
		return nil
	}
	r.For(f.Objects).Spec(s.Key)
	if !f.Covers(s) || !service.HasPlace(f, s, r) {
		return nil
	}
	if f.Has(node.Differs) && node.IsPublic(s) && !service.MayDiffer(f, s.Key.Hostname, r) {
		return nil // as everyone has it
	}
	if f.Balanced && !destination.Differs(f, s, r) {
		return nil
	}
	names := of(f, s, r)
	slices.Sort(names)
	return slices.Compact(names)
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

// Names returns all names of the facet, sorted: the definition from nothing,
// with which whatever is kept incrementally must agree. Build may still find
// that another facet has the better claim to a name, and return nil.
func Names(t resource.Type, f node.Facet, s *federation.Snapshot) []string {
	found := map[string]bool{}
	for _, name := range Fixed(t, f, s.Read()) {
		found[name] = true
	}
	for svc := range s.Services().All() {
		for _, name := range Contributes(t, f, svc, s.Read()) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
