package endpoint

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// Member is one address of an assignment: an endpoint, or an entry of other
// networks.
type Member struct {
	Offer
	entry    *entry
	behind   [][]Offer // what is reached by the entry
	draining bool
	locality federation.Locality
	priority uint32
	share    *share   // where requests are distributed over localities
	dead     bool     // an entry that probes do not reach, kept for want of another of its network
	exact    *big.Int // weight, before it is made to fit
	weight   uint32
}

// Members weighs the visible endpoints (design, sni-dnat): with L the least
// common multiple of the networks' numbers of gateways, a direct endpoint weighs
// w·L, and each of the G gateways of a network Σw·L/G. So every endpoint has its
// share, wherever it is.
func (h *VisibleEndpoints) Members(of *federation.Service) []Member {
	if len(h.entries) == 0 {
		return membersOf(h.Direct)
	}
	common := big.NewInt(1)
	for _, c := range h.behind {
		common = leastCommonMultiple(common, int64(len(c.gateways)))
	}
	var all []Member
	for _, o := range h.Direct {
		weight := new(big.Int).Mul(common, big.NewInt(int64(o.Endpoint.LoadBalancingWeight())))
		all = append(all, Member{Offer: o, draining: o.Endpoint.Health == federation.Draining, locality: o.Endpoint.Locality, exact: weight})
	}
	for _, e := range h.entered() {
		m := Member{entry: e, draining: true, dead: true, locality: e.gateway.Locality, exact: new(big.Int)}
		m.peer = transport.PeerBehind(of, e.networks...)
		for _, id := range e.networks {
			c := h.behind[id]
			weight, draining := c.weight()
			m.draining, m.dead = m.draining && draining, m.dead && c.dead
			m.behind = append(m.behind, c.offers)
			part := new(big.Int).Div(common, big.NewInt(int64(len(c.gateways))))
			m.exact.Add(m.exact, part.Mul(part, weight))
		}
		all = append(all, m)
	}
	fit(all)
	return all
}

// membersOf weighs endpoints that are all spoken to directly.
func membersOf(direct []Offer) []Member {
	shift := WeightShift(direct)
	all := make([]Member, len(direct))
	for i, o := range direct {
		all[i] = Member{
			Offer: o, draining: o.Endpoint.Health == federation.Draining, locality: o.Endpoint.Locality,
			weight: max(o.Endpoint.LoadBalancingWeight()>>shift, 1),
		}
	}
	return all
}

// weight is that of the endpoints that take traffic; where all of them are
// draining, of these.
func (c group) weight() (sum *big.Int, draining bool) {
	sums := map[bool]*big.Int{false: new(big.Int), true: new(big.Int)}
	for _, o := range c.offers {
		sum := sums[o.Endpoint.Health == federation.Draining]
		sum.Add(sum, big.NewInt(int64(o.Endpoint.LoadBalancingWeight())))
	}
	draining = sums[false].Sign() == 0
	return sums[draining], draining
}

func leastCommonMultiple(a *big.Int, n int64) *big.Int {
	b := big.NewInt(n)
	gcd := new(big.Int).GCD(nil, nil, a, b)
	return b.Mul(b, new(big.Int).Div(a, gcd))
}

// fit shifts the weights alike until their sum is what Envoy takes, none below 1.
func fit(all []Member) {
	total := new(big.Int)
	for _, m := range all {
		total.Add(total, m.exact)
	}
	for shift := uint(max(total.BitLen()-33, 0)); ; shift++ {
		sum := uint64(0)
		for i := range all {
			weight := new(big.Int).Rsh(all[i].exact, shift)
			all[i].weight = 1
			if weight.IsUint64() && weight.Uint64() <= math.MaxUint32 {
				all[i].weight = max(uint32(weight.Uint64()), 1)
			} else {
				sum += math.MaxUint32
			}
			sum += uint64(all[i].weight)
		}
		if sum <= math.MaxUint32 || shift > uint(total.BitLen()) {
			return
		}
	}
}

// AssignMembers groups members by priority and locality. Every locality has a
// weight, because gRPC drops those without; an endpoint has one where it is not 1.
func AssignMembers(v *facet.View, d destination.Destination, all []Member) *endpointv3.ClusterLoadAssignment {
	if destinationrule.ByLocality(d.Policy) {
		partMembers(all)
	}
	slices.SortStableFunc(all, func(m, n Member) int {
		return cmp.Or(cmp.Compare(m.priority, n.priority), m.locality.Compare(n.locality))
	})
	a := &endpointv3.ClusterLoadAssignment{ClusterName: d.Name}
	var group *endpointv3.LocalityLbEndpoints
	var shares []*share // of the groups, where requests are distributed over localities
	for i, m := range all {
		if i == 0 || m.locality != all[i-1].locality || m.priority != all[i-1].priority {
			group = &endpointv3.LocalityLbEndpoints{
				Locality: &corev3.Locality{Region: m.locality.Region, Zone: m.locality.Zone, SubZone: m.locality.SubZone},
				Priority: m.priority, LoadBalancingWeight: &wrapperspb.UInt32Value{},
			}
			a.Endpoints = append(a.Endpoints, group)
			if m.share != nil {
				shares = append(shares, m.share)
			}
		}
		group.LoadBalancingWeight.Value += m.weight
		group.LbEndpoints = append(group.LbEndpoints, m.lbEndpoint())
	}
	shareWeights(a.GetEndpoints(), shares)
	return a
}

func (m Member) lbEndpoint() *endpointv3.LbEndpoint {
	if m.entry == nil {
		return LBEndpoint(m.Offer, m.weight)
	}
	at := m.entry.gateway.Address
	e := &endpointv3.LbEndpoint{
		HealthStatus: corev3.HealthStatus_HEALTHY,
		Metadata:     m.peer,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: resource.SocketAddress(at.Addr().String(),
			at.Port())}},
	}
	if m.draining {
		e.HealthStatus = corev3.HealthStatus_DRAINING
	}
	if m.weight > 1 {
		e.LoadBalancingWeight = wrapperspb.UInt32(m.weight)
	}
	return e
}

// partMembers gives each gateway a sub-zone of its own, and each weight in
// localities that have endpoints of several weights.
func partMembers(all []Member) {
	type place struct {
		priority uint32
		locality federation.Locality
	}
	first, differ := map[place]uint32{}, map[place]bool{}
	for _, m := range all {
		at := place{m.priority, m.locality}
		if w, known := first[at]; m.entry == nil && !known {
			first[at] = m.weight
		} else if m.entry == nil && w != m.weight {
			differ[at] = true
		}
	}
	for i, m := range all {
		switch {
		case m.entry != nil:
			all[i].locality.SubZone += "~gateway-" + m.entry.gateway.Address.String()
		case differ[place{m.priority, m.locality}]:
			all[i].locality.SubZone += fmt.Sprintf("~weight-%d", m.weight)
		}
	}
}
