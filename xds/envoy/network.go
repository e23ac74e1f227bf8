package envoy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// A proxy sees the endpoints of its own network, and of networks that have no
// gateway, as they are (seeds 59, 60). Those of other networks it sees as that
// network's gateways, which carry their weight.

// horizon is what a destination's proxies see of its endpoints.
type horizon struct {
	direct  []offer                        // spoken to at their own addresses
	behind  map[federation.NetworkID]crowd // reached through gateways
	entries map[netip.AddrPort]*entry      // the gateways
}

// crowd is the endpoints of one network behind its gateways.
type crowd struct {
	offers   []offer
	gateways []federation.Gateway
	dead     bool // probes reach none of the gateways
}

// entry is one address of gateways, of one network or of several.
type entry struct {
	gateway  federation.Gateway
	networks []federation.NetworkID // sorted
}

// horizonOf splits the offers of a destination for the facet's proxies.
func (b *builder) horizonOf(d destination, offers []offer) horizon {
	h := horizon{behind: map[federation.NetworkID]crowd{}, entries: map[netip.AddrPort]*entry{}}
	own, networks := b.network(), b.networks()
	for _, o := range offers {
		id := o.endpoint.Network
		if _, isIP := o.endpoint.Address.IP(); d.service.MeshExternal || id == own || !isIP {
			h.direct = append(h.direct, o)
			continue
		}
		n := networks(id)
		switch {
		case n == nil:
			b.leaveOutEndpoint(o, resource.ReasonUnknownNetwork, fmt.Sprintf("%s says that it is in network %s, in which no cluster is and which no Network declares", o.endpoint.Address, id))
		case !n.Gated:
			h.direct = append(h.direct, o)
		default:
			b.through(&h, d, o, crowd{gateways: n.GatewaysFrom(own), dead: n.Unreachable(own)})
		}
	}
	h.direct = b.withoutDuplicates(h.direct)
	for id, c := range h.behind {
		c.offers = b.withoutDuplicates(c.offers)
		h.behind[id] = c
		for _, g := range c.gateways {
			h.enter(g, id)
		}
	}
	b.yieldToEndpoints(&h)
	b.notePassages(h)
	return h
}

// networks reads each network once.
func (b *builder) networks() func(federation.NetworkID) *federation.Network {
	read := map[federation.NetworkID]*federation.Network{}
	return func(id federation.NetworkID) *federation.Network {
		n, known := read[id]
		if !known {
			n, _ = b.reader.Network(id)
			read[id] = n
		}
		return n
	}
}

// through has the proxies reach the endpoint by the gateways of its network, if
// anything of it can pass there.
func (b *builder) through(h *horizon, d destination, o offer, by crowd) {
	id := o.endpoint.Network
	switch {
	case len(by.gateways) == 0:
		b.noGateway(o)
	case !o.endpoint.TakesMutualTLS():
		b.leaveOutEndpoint(o, resource.ReasonNoMutualTLS, fmt.Sprintf("%s is in network %s, whose gateways pass mutual TLS on and nothing else, and does not take it: it needs a sidecar, and the label security.istio.io/tlsMode: istio", o.endpoint.Address, id))
	case d.policy.GetTls() != nil && !d.demandsMutual():
		b.leaveOut(resource.Reason{
			Code: resource.ReasonMutualTLSOff, Shard: o.shard, Address: o.endpoint.Address, Endpoint: o.endpoint, Cause: d.rule(),
			Message: fmt.Sprintf("%s has tls.mode %s, and the gateways of network %s pass mutual TLS of the mesh on and nothing else", d.ruledBy(), d.policy.GetTls().GetMode(), id),
		})
	case b.facet.GRPC:
		b.leaveOutEndpoint(o, resource.ReasonNoIdentity, fmt.Sprintf("%s is in network %s, whose gateways pass mutual TLS on and nothing else, and gRPC clients without a proxy speak plain text here: give the client a sidecar", o.endpoint.Address, id))
	case !d.identity:
		b.leaveOutEndpoint(o, resource.ReasonNoIdentity, fmt.Sprintf("%s is in network %s, whose gateways pass mutual TLS on and nothing else, and the proxy has no identity of the mesh: it needs IDENTITY_SOURCE in its metadata, as isthmus proxy bootstrap writes it", o.endpoint.Address, id))
	default:
		by.offers = append(h.behind[id].offers, o)
		h.behind[id] = by
	}
}

// noGateway says why the endpoint's network cannot be entered.
func (b *builder) noGateway(o offer) {
	id := o.endpoint.Network
	n, _ := b.reader.Network(id)
	r := resource.Reason{Shard: o.shard, Address: o.endpoint.Address, Endpoint: o.endpoint}
	switch {
	case len(n.Gateways) > 0:
		r.Code, r.Cause = resource.ReasonNoGatewayForNetwork, n.Gateways[0].Cause.Object
		r.Message = fmt.Sprintf("none of the gateways of network %s may be entered from network %s", id, b.network())
	case len(n.Refused) > 0:
		r.Code, r.Cause = resource.ReasonNoGatewayAddress, n.Refused[0].Cause.Object
		r.Message = fmt.Sprintf("no gateway of network %s can be used: %s %s", id, n.Refused[0].Gateway, n.Refused[0].Why)
	default:
		r.Code, r.Message = resource.ReasonNoGatewayAddress, fmt.Sprintf("no gateway of network %s has an address from outside", id)
	}
	b.leaveOut(r)
}

// enter makes the gateway an entry of the network. Where gateways of several
// networks have one address, it stands where the first of them does.
func (h *horizon) enter(g federation.Gateway, id federation.NetworkID) {
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

// yieldToEndpoints gives up the entries whose address is that of an endpoint
// that is spoken to directly: Envoy knows an address once.
func (b *builder) yieldToEndpoints(h *horizon) {
	for _, o := range h.direct {
		ip, _ := o.endpoint.Address.IP()
		at := netip.AddrPortFrom(ip, o.number)
		e, clash := h.entries[at]
		if !clash {
			continue
		}
		delete(h.entries, at)
		for _, id := range e.networks {
			c := h.behind[id]
			c.gateways = slices.DeleteFunc(slices.Clone(c.gateways), func(g federation.Gateway) bool { return g.Address == at })
			if h.behind[id] = c; len(c.gateways) > 0 {
				continue
			}
			delete(h.behind, id)
			for _, lost := range c.offers {
				b.leaveOutEndpoint(lost, resource.ReasonDuplicateAddress, fmt.Sprintf("the only gateway of network %s has the address %s of an endpoint of %s", id, at, o.shard))
			}
		}
	}
}

// notePassages keeps for Explain what is reached through gateways.
func (b *builder) notePassages(h horizon) {
	if b.passages == nil {
		return
	}
	for _, c := range h.behind {
		for _, o := range c.offers {
			b.passages[o.endpoint] = passage{c.gateways, c.dead}
		}
	}
}

// entered are the entries in the order of their addresses.
func (h *horizon) entered() []*entry {
	return slices.SortedFunc(maps.Values(h.entries), func(a, b *entry) int { return a.gateway.Address.Compare(b.gateway.Address) })
}

// rule is the oldest of the rules that made the destination's policy.
func (d destination) rule() federation.ObjectKey {
	if len(d.rules) == 0 {
		return federation.ObjectKey{}
	}
	return d.rules[0].Key
}
