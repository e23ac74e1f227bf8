package destination

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Passes reports whether a router in sni-dnat mode has clusters for the port: what is
// outside of the mesh, found by DNS or without balancing, and UDP have none.
func Passes(s *federation.Service, p federation.ServicePort) bool {
	return !s.MeshExternal && s.Resolution == federation.ClientSideLB && p.Protocol.Transport() == federation.TransportTCP
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
