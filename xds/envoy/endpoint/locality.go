package endpoint

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// KeepClusterLocal leaves out what is in other clusters than the proxy's, where
// the service is for its own cluster only.
func KeepClusterLocal(v *facet.View, d destination.Destination, offers []Offer) []Offer {
	mesh := v.Reader.Mesh()
	if v.Facet.Place != node.Near || v.Facet.Cluster == "" || !service.IsClusterLocal(d.Service.Key.Hostname, mesh) {
		return offers
	}
	return slices.DeleteFunc(offers, func(o Offer) bool {
		in := federation.ShardEndpoints{Shard: o.shard}.ClusterOf(o.Endpoint)
		if in == v.Facet.Cluster {
			return false
		}
		r := resource.Reason{
			Code: resource.ReasonClusterLocal, Shard: o.shard, Address: o.Endpoint.Address, Endpoint: o.Endpoint,
			Message: "the host is cluster-local, and the endpoint is in cluster " + string(in),
		}
		if mesh != nil && len(mesh.ClusterLocalHosts) > 0 {
			r.Cause = federation.MeshSettingsKey
		}
		v.LeaveOut(r)
		return true
	})
}

// prefersNear reports whether the destination's endpoints have priorities by locality:
// where they are ejected when they fail, or the service or the settings want it,
// unless a rule turns that off.
func prefersNear(v *facet.View, d destination.Destination) bool {
	if v.Facet.Place != node.Near || v.Facet.Locality == (federation.Locality{}) {
		return false
	}
	if enabled := d.Policy.GetLoadBalancer().GetLocalityLbSetting().GetEnabled(); enabled != nil && !enabled.GetValue() {
		return false
	}
	mesh := v.Reader.Mesh()
	return d.Policy.GetOutlierDetection() != nil || service.StaysClose(d.Service) || mesh != nil && mesh.LocalityLoadBalancing.Enabled
}

// prioritise orders the members by how near they are, endpoints and gateways
// alike, with priorities that have no gap from 0 on. Gateways of a network none of
// whose gateways can be reached come behind everything else (F86).
func prioritise(v *facet.View, d destination.Destination, all []Member) {
	isDead := func(m Member) bool { return m.dead }
	near := prefersNear(v, d)
	if !near && !slices.ContainsFunc(all, isDead) {
		return
	}
	takesOver := ""
	if near {
		takesOver = failoverRegion(v, d)
	}
	const beyond = 100 // farther than any distance
	var ranks []uint32
	for i, m := range all {
		if near {
			all[i].priority = distance(v.Facet.Locality, m.locality, takesOver)
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

// failoverRegion is the region that takes over from the proxy's; empty: any.
func failoverRegion(v *facet.View, d destination.Destination) string {
	for _, f := range d.Policy.GetLoadBalancer().GetLocalityLbSetting().GetFailover() {
		if f.GetFrom() == v.Facet.Locality.Region {
			return f.GetTo()
		}
	}
	if mesh := v.Reader.Mesh(); mesh != nil {
		for _, f := range mesh.LocalityLoadBalancing.Failover {
			if f.From == v.Facet.Locality.Region {
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
