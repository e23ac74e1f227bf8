package destination

import (
	"iter"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Passes reports whether a router in sni-dnat mode has clusters for the port: what is
// outside of the mesh, found by DNS or without balancing, and UDP have none.
func Passes(s *federation.Service, p federation.ServicePort) bool {
	return !s.MeshExternal && s.Resolution == federation.ClientSideLB && p.Protocol.Transport() == federation.TransportTCP
}

// PassedServices yields the admitted services to which a router of the namespace passes connections on, each with the
// subsets that it has for everyone: a router passes on for callers of any namespace.
func PassedServices(
	namespace string, r *federation.Reader, admits func(*federation.Service) bool,
) iter.Seq2[*federation.Service, []string] {
	_ = slices.Collect(r.Objects().Of(federation.DestinationRuleKind)) // subsets come and go with them
	r.Mesh()
	apart := r.Apart() // else each service's rules are noted one by one
	return func(yield func(*federation.Service, []string) bool) {
		for s := range r.Specs() {
			if !node.InMesh(s, namespace) || !admits(s) {
				continue
			}
			merged, _ := destinationrule.Merge(s, destinationrule.Everyone(), apart)
			subsets := make([]string, len(merged.Subsets))
			for i, subset := range merged.Subsets {
				subsets[i] = subset.GetName()
			}
			if !yield(s, subsets) {
				return
			}
		}
	}
}

// PassedNames are the names by which such a router passes connections on to the service's ports
// and the subsets of them.
func PassedNames(s *federation.Service, subsets []string) []string {
	var names []string
	for _, p := range s.Ports {
		if !Passes(s, p) {
			continue
		}
		for _, subset := range append([]string{""}, subsets...) {
			names = append(names, resource.ServerName(s.Key.Hostname, p.Number, subset))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
