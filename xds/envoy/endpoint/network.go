package endpoint

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// A proxy sees the endpoints of its own network, and of networks that have no
// gateway, as they are (seeds 59, 60). Those of other networks it sees as that
// network's gateways, which carry their weight.

// VisibleEndpoints is what a destination's proxies see of its endpoints.
type VisibleEndpoints struct {
	Direct  []Offer                        // spoken to at their own addresses
	behind  map[federation.NetworkID]group // reached through gateways
	entries map[netip.AddrPort]*entry      // the gateways
}

// group is the endpoints of one network behind its gateways.
type group struct {
	offers   []Offer
	gateways []federation.Gateway
	dead     bool // probes reach none of the gateways
}

// entry is one address of gateways, of one network or of several.
type entry struct {
	gateway  federation.Gateway
	networks []federation.NetworkID // sorted
}

// SplitHorizon splits the offers of a destination for the facet's proxies.
func SplitHorizon(v *facet.View, d destination.Destination, offers []Offer) VisibleEndpoints {
	h := VisibleEndpoints{behind: map[federation.NetworkID]group{}, entries: map[netip.AddrPort]*entry{}}
	own, networks := v.Network(), v.Networks()
	for _, o := range offers {
		id := o.Endpoint.Network
		if _, isIP := o.Endpoint.Address.IP(); d.Service.MeshExternal || id == own || !isIP {
			h.Direct = append(h.Direct, o)
			continue
		}
		n := networks(id)
		switch {
		case n == nil:
			LeaveOutEndpoint(v, o, resource.ReasonUnknownNetwork,
				fmt.Sprintf("%s says that it is in network %s, in which no cluster is and which no Network declares", o.Endpoint.Address, id))
		case !n.Gated:
			h.Direct = append(h.Direct, o)
		default:
			through(v, &h, d, o, group{gateways: n.GatewaysFrom(own), dead: n.Unreachable(own)})
		}
	}
	h.Direct = WithoutDuplicates(v, h.Direct)
	for id, c := range h.behind {
		c.offers = WithoutDuplicates(v, c.offers)
		h.behind[id] = c
		for _, g := range c.gateways {
			h.enter(g, id)
		}
	}
	yieldToEndpoints(v, &h)
	noteGatewayHops(v, h)
	return h
}

// through has the proxies reach the endpoint by the gateways of its network, if
// anything of it can pass there.
func through(v *facet.View, h *VisibleEndpoints, d destination.Destination, o Offer, by group) {
	id := o.Endpoint.Network
	switch {
	case len(by.gateways) == 0:
		noGateway(v, o)
	case !o.TakesMutualTLS():
		LeaveOutPlain(v, o, fmt.Sprintf("%s is in network %s, whose gateways pass mutual TLS on and nothing else, and does not take it",
			o.Endpoint.Address, id))
	case d.Policy.GetTls() != nil && !d.DemandsMutual():
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonMutualTLSOff, Shard: o.shard, Address: o.Endpoint.Address, Endpoint: o.Endpoint, Cause: d.Rule(),
			Message: fmt.Sprintf("%s has tls.mode %s, and the gateways of network %s pass mutual TLS of the mesh on and nothing else", d.RuledBy(),
				d.Policy.GetTls().GetMode(), id),
		})
	case d.Policy.GetProxyProtocol() != nil:
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonMutualTLSOff, Shard: o.shard, Address: o.Endpoint.Address, Endpoint: o.Endpoint, Cause: d.Rule(),
			Message: fmt.Sprintf("%s has proxyProtocol, and the gateways of network %s pass mutual TLS of the mesh on and nothing else",
				d.RuledBy(), id),
		})
	case v.Facet.GRPC:
		LeaveOutEndpoint(v, o, resource.ReasonNoIdentity,
			fmt.Sprintf("%s is in network %s, whose gateways pass mutual TLS on and nothing else, and gRPC clients without a proxy speak plain text here: give the client a sidecar", o.Endpoint.Address, id))
	case !d.Identity:
		LeaveOutEndpoint(v, o, resource.ReasonNoIdentity,
			fmt.Sprintf("%s is in network %s, whose gateways pass mutual TLS on and nothing else, and the proxy has no identity of the mesh: it needs IDENTITY_SOURCE in its metadata, as isthmus proxy bootstrap writes it", o.Endpoint.Address, id))
	default:
		by.offers = append(h.behind[id].offers, o)
		h.behind[id] = by
	}
}

// noGateway says why the endpoint's network cannot be entered.
func noGateway(v *facet.View, o Offer) {
	id := o.Endpoint.Network
	n, _ := v.Reader.Network(id)
	r := resource.Reason{Shard: o.shard, Address: o.Endpoint.Address, Endpoint: o.Endpoint}
	switch {
	case len(n.Gateways) > 0:
		r.Code, r.Cause = resource.ReasonNoGatewayForNetwork, n.Gateways[0].Cause.Object
		r.Message = fmt.Sprintf("none of the gateways of network %s may be entered from network %s", id, v.Network())
	case len(n.Refused) > 0:
		r.Code, r.Cause = resource.ReasonNoGatewayAddress, n.Refused[0].Cause.Object
		r.Message = fmt.Sprintf("no gateway of network %s can be used: %s %s", id, n.Refused[0].Gateway, n.Refused[0].Why)
	default:
		r.Code, r.Message = resource.ReasonNoGatewayAddress, fmt.Sprintf("no gateway of network %s has an address from outside", id)
	}
	v.LeaveOut(r)
}

// enter makes the gateway an entry of the network. Where gateways of several
// networks have one address, it stands where the first of them does.
func (h *VisibleEndpoints) enter(g federation.Gateway, id federation.NetworkID) {
	e := h.entries[g.Address]
	if e == nil {
		h.entries[g.Address] = &entry{gateway: g, networks: []federation.NetworkID{id}}
		return
	}
	if id < e.networks[0] {
		e.gateway = g
	}
	e.networks = append(e.networks, id)
	slices.Sort(e.networks)
}

// yieldToEndpoints drops the entries whose address is that of an endpoint that is
// reached directly: Envoy accepts an address only once.
func yieldToEndpoints(v *facet.View, h *VisibleEndpoints) {
	for _, o := range h.Direct {
		ip, _ := o.Endpoint.Address.IP()
		at := netip.AddrPortFrom(ip, o.number)
		e, clash := h.entries[at]
		if !clash {
			continue
		}
		delete(h.entries, at)
		for _, id := range e.networks {
			c := h.behind[id]
			c.gateways = slices.DeleteFunc(slices.Clone(c.gateways), func(g federation.Gateway) bool { return g.Address == at })
			h.behind[id] = c
			if len(c.gateways) > 0 {
				continue
			}
			delete(h.behind, id)
			for _, lost := range c.offers {
				LeaveOutEndpoint(v, lost, resource.ReasonDuplicateAddress,
					fmt.Sprintf("the only gateway of network %s has the address %s of an endpoint of %s", id, at, o.shard))
			}
		}
	}
}

// noteGatewayHops keeps for Explain what is reached through gateways.
func noteGatewayHops(v *facet.View, h VisibleEndpoints) {
	if v.GatewayHops == nil {
		return
	}
	for _, c := range h.behind {
		for _, o := range c.offers {
			v.GatewayHops[o.Endpoint] = facet.GatewayHop{Gateways: c.gateways, Dead: c.dead}
		}
	}
}

// entered are the entries in the order of their addresses.
func (h *VisibleEndpoints) entered() []*entry {
	return slices.SortedFunc(maps.Values(h.entries), func(a, b *entry) int { return a.gateway.Address.Compare(b.gateway.Address) })
}
