package endpoint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// KeepClusterLocal excludes what is in other clusters than the proxy's, where
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

// prefersNear reports whether the destination's endpoints have priorities by where they
// are: where they are ejected when they fail, or the service or the settings want it. Settings that
// do not want it have no say where the rule has its own.
func prefersNear(v *facet.View, d destination.Destination) bool {
	mesh := v.Reader.Mesh()
	switch own := d.Policy.GetLoadBalancer().GetLocalityLbSetting() != nil; {
	case service.StaysClose(d.Service):
		return true
	case destinationrule.OrderForMesh(mesh, false) && !own:
		return false
	}
	return d.Policy.GetOutlierDetection() != nil || destinationrule.OrderForMesh(mesh, true)
}

// beyond is farther than anything that ranks a member.
const beyond = 1 << 16

// prioritise orders the members by labels or by how near they are, endpoints and gateways
// alike, with priorities that have no gap from 0 on. Gateways of a network none of
// whose gateways can be reached come behind everything else (F86). Where requests are
// distributed over localities, the members of others are excluded, and all that remain
// have the same priority.
func prioritise(v *facet.View, d destination.Destination, all []Member) []Member {
	if v.Facet.Place == node.Near {
		switch l := destinationrule.LocalitiesOf(d.Policy, v.Reader.Mesh()); {
		case l.Off:
		case len(l.Distribute) > 0:
			all = distribute(v, d, all, l.SharesFrom(v.Facet.Locality))
		case l.Regions, prefersNear(v, d):
			rank(v, all, l)
		}
	}
	if !slices.ContainsFunc(all, func(m Member) bool { return m.priority > 0 || m.dead }) {
		return all
	}
	var ranks []uint32
	for i := range all {
		if all[i].dead {
			all[i].priority += beyond
		}
		ranks = append(ranks, all[i].priority)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for i := range all {
		all[i].priority = uint32(slices.Index(ranks, all[i].priority))
	}
	return all
}

// rank orders the members by the labels of failoverPriority; those of the same labels,
// and all where there are none, by distance if the proxies' locality is known. Regions are
// always told apart.
func rank(v *facet.View, all []Member, l destinationrule.Localities) {
	wanted := wantedLabels(v, l.FailoverPriority)
	byDistance := v.Facet.Locality != (federation.Locality{}) && (l.Regions || len(wanted) == 0 || len(l.Failover) > 0)
	takesOver := ""
	for _, f := range l.Failover {
		if f.From == v.Facet.Locality.Region {
			takesOver = f.To
			break
		}
	}
	for i, m := range all {
		same := 0
		for same < len(wanted) && m.label(wanted[same].key) == wanted[same].value {
			same++
		}
		all[i].priority = uint32(min(len(wanted)-same, maxLabels)) * (farthest + 1)
		if sameRegion := m.locality.Region == v.Facet.Locality.Region; byDistance && (!l.Regions || !sameRegion) {
			all[i].priority += distance(v.Facet.Locality, m.locality, takesOver)
		}
	}
}

// maxLabels bounds the ranks by labels, so that they stay below beyond.
const maxLabels = 1 << 10

// wantedLabel is a label that endpoints should have.
type wantedLabel struct{ key, value string }

// wantedLabels are those of a failoverPriority: of its own values, or else the proxies'.
func wantedLabels(v *facet.View, priority []string) []wantedLabel {
	wanted := make([]wantedLabel, len(priority))
	for i, text := range priority {
		key, value, isPair := strings.Cut(text, "=")
		if !isPair {
			value = proxyLabel(v, key)
		}
		wanted[i] = wantedLabel{key, value}
	}
	return wanted
}

func proxyLabel(v *facet.View, key string) string {
	at := federation.Topology{Cluster: v.Facet.Cluster, Locality: v.Facet.Locality}
	if key == federation.LabelNetwork {
		at.Network = v.Network()
	}
	if value, is := at.Label(nil, key); is {
		return value
	}
	return v.Facet.PriorityLabel(key)
}

// label is the value of a label of the member. A gateway has what all endpoints behind it
// have, and its own locality.
func (m Member) label(key string) string {
	if m.entry == nil {
		return m.Offer.label(key)
	}
	if value, is := m.locality.Label(key); is {
		return value
	}
	first := m.behind[0][0].label(key)
	for _, offers := range m.behind {
		if slices.ContainsFunc(offers, func(o Offer) bool { return o.label(key) != first }) {
			return ""
		}
	}
	return first
}

func (o Offer) label(key string) string {
	value, _ := federation.ShardEndpoints{Shard: o.shard}.TopologyOf(o.Endpoint).Label(o.Endpoint.Labels, key)
	return value
}

// share is the part of the requests that goes to the localities of a pattern.
type share struct {
	to     string
	weight uint32
}

// distribute keeps the members of localities that have a share of the requests, and
// notes which.
func distribute(v *facet.View, d destination.Destination, all []Member, shares map[string]uint32) []Member {
	if shares == nil {
		return all
	}
	var to []*share
	for _, pattern := range slices.Backward(slices.Sorted(maps.Keys(shares))) { // the most exact first
		if weight := shares[pattern]; weight > 0 {
			to = append(to, &share{to: pattern, weight: min(weight, 100)})
		}
	}
	var kept, dropped []Member
	entered := map[federation.NetworkID]bool{} // by a gateway that is kept
	for _, m := range all {
		i := slices.IndexFunc(to, func(s *share) bool { return destinationrule.MatchesLocality(m.locality, s.to) })
		if i < 0 {
			dropped = append(dropped, m)
			continue
		}
		m.share = to[i]
		kept = append(kept, m)
		if m.entry != nil {
			for _, id := range m.entry.networks {
				entered[id] = true
			}
		}
	}
	for _, m := range dropped {
		m.leaveOut(v, d, entered)
	}
	return kept
}

// leaveOut notes what is not reached because the member's locality has no share, unless
// its network is entered elsewhere.
func (m Member) leaveOut(v *facet.View, d destination.Destination, entered map[federation.NetworkID]bool) {
	cause := federation.MeshSettingsKey
	if d.Policy.GetLoadBalancer().GetLocalityLbSetting() != nil {
		cause = d.Rule()
	}
	note := func(o Offer) {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonNoShare, Shard: o.shard, Address: o.Endpoint.Address, Endpoint: o.Endpoint, Cause: cause,
			Message: fmt.Sprintf("requests of proxies in %q are distributed over other localities than %q", v.Facet.Locality, m.locality),
		})
	}
	if m.entry == nil {
		note(m.Offer)
		return
	}
	for i, id := range m.entry.networks {
		if !entered[id] {
			entered[id] = true
			for _, o := range m.behind[i] {
				note(o)
			}
		}
	}
}

// shareWeights are the weights of groups of members, by the shares of their localities:
// the groups of one share have it together, in proportion to their members.
func shareWeights(groups []*endpointv3.LocalityLbEndpoints, shares []*share) {
	type part struct {
		of       *share
		priority uint32
	}
	total := map[part]uint64{}
	for i, s := range shares {
		if s != nil {
			total[part{s, groups[i].GetPriority()}] += uint64(groups[i].GetLoadBalancingWeight().GetValue())
		}
	}
	const precision = 1000
	for i, s := range shares {
		if s != nil {
			weight := groups[i].GetLoadBalancingWeight()
			weight.Value = uint32(max(uint64(weight.Value)*uint64(s.weight)*precision/total[part{s, groups[i].GetPriority()}], 1))
		}
	}
}

// farthest is the greatest distance.
const farthest = 4

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
