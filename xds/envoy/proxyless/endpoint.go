package proxyless

import (
	"cmp"
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// StaticAssignment has no endpoints.
func StaticAssignment(_ *facet.View, name string) proto.Message {
	if name != resource.BlackHoleCluster {
		return nil
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name}
}

// Assignment builds the endpoints of a destination for gRPC clients. It
// exists for every cluster: a client that gets an empty one fails at once, a client
// that gets nothing waits.
func Assignment(v *facet.View, name string) proto.Message {
	d, ok := destination.Of(v, name)
	if !ok || !service.HasPlace(v.Facet, d.Service, v.Reader) {
		return nil
	}
	if grpcRefusal(d) != "" {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name} // the cluster says why
	}
	offers, byName := grpcOffers(v, d)
	if byName {
		offers = nil
	}
	return grpcAssign(d, name, offers)
}

// grpcGroup is a set of endpoints among which gRPC makes no difference.
type grpcGroup struct {
	priority uint32
	locality federation.Locality
	offers   []endpoint.Offer
}

// grpcAssign groups offers by locality. gRPC takes no endpoint that drains and
// gives all endpoints of a locality the same share. So endpoints that drain come
// last, by priority, and where weights differ within a locality each weight has
// a locality of its own; rings do regard the weights of endpoints.
func grpcAssign(d destination.Destination, name string, offers []endpoint.Offer) *endpointv3.ClusterLoadAssignment {
	shift := endpoint.WeightShift(offers)
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for _, group := range grpcGroups(d, offers, shift) {
		l := group.locality
		out := &endpointv3.LocalityLbEndpoints{
			Locality: &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}, Priority: group.priority,
			LoadBalancingWeight: &wrapperspb.UInt32Value{},
		}
		for _, o := range group.offers {
			weight := max(o.Endpoint.LoadBalancingWeight()>>shift, 1)
			out.LoadBalancingWeight.Value += weight
			if !byRing(d) {
				weight = 1
			}
			e := endpoint.LBEndpoint(o, weight)
			e.HealthStatus = corev3.HealthStatus_HEALTHY
			out.LbEndpoints = append(out.LbEndpoints, e)
		}
		a.Endpoints = append(a.Endpoints, out)
	}
	return a
}

// grpcGroups splits sorted offers; the shift is that of their weights.
func grpcGroups(d destination.Destination, offers []endpoint.Offer, shift uint) []grpcGroup {
	var singles []grpcGroup
	allDrain := !slices.ContainsFunc(offers, func(o endpoint.Offer) bool { return o.Endpoint.Health != federation.Draining })
	for _, o := range offers {
		g := grpcGroup{locality: o.Endpoint.Locality, offers: []endpoint.Offer{o}}
		if o.Endpoint.Health == federation.Draining && !allDrain {
			g.priority = 1
		}
		singles = append(singles, g)
	}
	if !byRing(d) {
		partWeights(singles, shift)
	}
	slices.SortStableFunc(singles, func(g, h grpcGroup) int {
		return cmp.Or(cmp.Compare(g.priority, h.priority), g.locality.Compare(h.locality))
	})
	var groups []grpcGroup
	for _, g := range singles {
		if last := len(groups) - 1; last >= 0 && groups[last].priority == g.priority && groups[last].locality == g.locality {
			groups[last].offers = append(groups[last].offers, g.offers...)
			continue
		}
		groups = append(groups, g)
	}
	return groups
}

// partWeights gives each weight its own sub-zone in localities that have
// endpoints of several weights.
func partWeights(singles []grpcGroup, shift uint) {
	type place struct {
		priority uint32
		locality federation.Locality
	}
	weightOf := func(g grpcGroup) uint32 { return max(g.offers[0].Endpoint.LoadBalancingWeight()>>shift, 1) }
	first, differ := map[place]uint32{}, map[place]bool{}
	for _, g := range singles {
		at := place{g.priority, g.locality}
		if w, known := first[at]; !known {
			first[at] = weightOf(g)
		} else if w != weightOf(g) {
			differ[at] = true
		}
	}
	for i, g := range singles {
		if differ[place{g.priority, g.locality}] {
			singles[i].locality.SubZone += fmt.Sprintf("~weight-%d", weightOf(g))
		}
	}
}
