package service

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// IsClusterLocal reports whether the host is served by the caller's own cluster only:
// as the settings have it, the most specific first, else where it is Kubernetes'
// own. What clusters export is not.
func IsClusterLocal(host federation.Hostname, mesh *federation.MeshSettings) bool {
	if mesh != nil && len(mesh.ClusterLocalHosts)+len(mesh.ClusterLocalExceptions) > 0 {
		for _, name := range federation.Wildcards(host) {
			switch {
			case slices.Contains(mesh.ClusterLocalExceptions, name):
				return false
			case slices.Contains(mesh.ClusterLocalHosts, name):
				return true
			}
		}
	}
	if host.IsClusterSet() {
		return false
	}
	labels := strings.SplitN(string(host), ".", 4)
	return len(labels) > 2 && labels[2] == "svc" && (labels[1] == "kube-system" || labels[1] == "default" && labels[0] == "kubernetes")
}

// dependsOnPlace reports whether the facets near have the service: not whether
// anything is different for a proxy there, which takes a look at its rules.
func dependsOnPlace(s *federation.Service, r *federation.Reader) bool {
	mesh := r.Mesh()
	if StaysClose(s) || IsClusterLocal(s.Key.Hostname, mesh) || destinationrule.OrderForMesh(mesh, true) ||
		mesh != nil && len(mesh.LocalityLoadBalancing.Distribute) > 0 {
		return true
	}
	return destinationrule.Any(s.Key.Hostname, r, destinationrule.GoesByPlace)
}

// StaysClose reports whether the service itself wants what is nearby to come first.
// Nodes are not told apart: PreferSameNode is taken as PreferSameZone.
func StaysClose(s *federation.Service) bool {
	switch s.TrafficDistribution {
	case "PreferClose", "PreferSameZone", "PreferSameNode":
		return true
	}
	return false
}

// HasPlace reports whether the facet is one of those that have the service's endpoints.
func HasPlace(f node.Facet, s *federation.Service, r *federation.Reader) bool {
	return f.Place == "" || (f.Place == node.Near) == dependsOnPlace(s, r)
}
