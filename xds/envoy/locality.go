package envoy

import (
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// dependsOnPlace tells whether the facets near have the service: not whether
// anything is different for a proxy there, which takes a look at its rules.
func dependsOnPlace(s *federation.Service, in destinationrule.Objects) bool {
	mesh := in.Mesh()
	if staysClose(s) || isClusterLocal(s.Key.Hostname, mesh) || mesh != nil && mesh.LocalityLoadBalancing.Enabled {
		return true
	}
	return destinationrule.Any(s.Key.Hostname, in, destinationrule.Ejects)
}

// staysClose tells that the service itself wants what is nearby to come first.
// Nodes are not told apart: PreferSameNode is taken as PreferSameZone.
func staysClose(s *federation.Service) bool {
	switch s.TrafficDistribution {
	case "PreferClose", "PreferSameZone", "PreferSameNode":
		return true
	}
	return false
}

// hasPlace tells that the facet is one of those that have the service's endpoints.
func hasPlace(f node.Facet, s *federation.Service, in destinationrule.Objects) bool {
	return f.Place == "" || (f.Place == node.Near) == dependsOnPlace(s, in)
}

// isClusterLocal tells that the host is served by the caller's own cluster only:
// as the settings have it, the most specific first, else where it is Kubernetes'
// own.
func isClusterLocal(host federation.Hostname, mesh *federation.MeshSettings) bool {
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
	labels := strings.SplitN(string(host), ".", 4)
	return len(labels) > 2 && labels[2] == "svc" && (labels[1] == "kube-system" || labels[1] == "default" && labels[0] == "kubernetes")
}

// keepClusterLocal leaves out what is in other clusters than the proxy's, where
// the service is for its own cluster only.
func (b *builder) keepClusterLocal(d destination, offers []offer) []offer {
	mesh := b.reader.Mesh()
	if b.facet.Place != node.Near || b.facet.Cluster == "" || !isClusterLocal(d.service.Key.Hostname, mesh) {
		return offers
	}
	return slices.DeleteFunc(offers, func(o offer) bool {
		in := federation.ShardEndpoints{Shard: o.shard}.ClusterOf(o.endpoint)
		if in == b.facet.Cluster {
			return false
		}
		r := resource.Reason{
			Code: resource.ReasonClusterLocal, Shard: o.shard, Address: o.endpoint.Address, Endpoint: o.endpoint,
			Message: "the host is cluster-local, and the endpoint is in cluster " + string(in),
		}
		if mesh != nil && len(mesh.ClusterLocalHosts) > 0 {
			r.Cause = federation.MeshSettingsKey
		}
		b.leaveOut(r)
		return true
	})
}

// prefersNear tells that the destination's endpoints have priorities by locality:
// where they are ejected when they fail, or the service or the settings want it,
// unless a rule turns that off.
func (b *builder) prefersNear(d destination) bool {
	if b.facet.Place != node.Near || b.facet.Locality == (federation.Locality{}) {
		return false
	}
	if enabled := d.policy.GetLoadBalancer().GetLocalityLbSetting().GetEnabled(); enabled != nil && !enabled.GetValue() {
		return false
	}
	mesh := b.reader.Mesh()
	return d.policy.GetOutlierDetection() != nil || staysClose(d.service) || mesh != nil && mesh.LocalityLoadBalancing.Enabled
}

// prioritise orders the members by how near they are, endpoints and gateways
// alike, with priorities that have no gap from 0 on. Gateways of a network none of
// whose gateways can be reached come behind everything else (F86).
func (b *builder) prioritise(d destination, all []member) {
	isDead := func(m member) bool { return m.dead }
	near := b.prefersNear(d)
	if !near && !slices.ContainsFunc(all, isDead) {
		return
	}
	takesOver := ""
	if near {
		takesOver = b.takesOver(d)
	}
	const beyond = 100 // farther than any distance
	var ranks []uint32
	for i, m := range all {
		if near {
			all[i].priority = distance(b.facet.Locality, m.locality, takesOver)
		}
		if m.dead {
			all[i].priority += beyond
		}
		ranks = append(ranks, all[i].priority)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for i := range all {
		all[i].priority = uint32(slices.Index(ranks, all[i].priority))
	}
}

// takesOver is the region that takes over from the proxy's; empty: any.
func (b *builder) takesOver(d destination) string {
	for _, f := range d.policy.GetLoadBalancer().GetLocalityLbSetting().GetFailover() {
		if f.GetFrom() == b.facet.Locality.Region {
			return f.GetTo()
		}
	}
	if mesh := b.reader.Mesh(); mesh != nil {
		for _, f := range mesh.LocalityLoadBalancing.Failover {
			if f.From == b.facet.Locality.Region {
				return f.To
			}
		}
	}
	return ""
}

// distance is 0 within a sub-zone, 1 within a zone, 2 within a region, 3 to the
// region that takes over and 4 to others.
func distance(from, to federation.Locality, takesOver string) uint32 {
	switch {
	case from == to:
		return 0
	case from.Region == to.Region && from.Zone == to.Zone:
		return 1
	case from.Region == to.Region:
		return 2
	case to.Region != "" && to.Region == takesOver:
		return 3
	}
	return 4
}
