package federation

import (
	"iter"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/internal/smallmap"
)

// DefaultGatewayPort is where gateways take the mesh's traffic unless told
// otherwise.
const DefaultGatewayPort = 15443

// Network is a network as the snapshot has it: what its object declares and
// what clusters say of it, joined. A network is known if it has an object or
// some cluster is in it; the default one always is. It is never changed after it
// was published.
type Network struct {
	ID       NetworkID
	CIDRs    []netip.Prefix
	Clusters []ClusterID // whose endpoints are in it unless they say otherwise, sorted
	// Gated reports whether the network is entered through gateways, whether or not
	// one of them has an address now. Others are sent to directly.
	Gated    bool
	Gateways []Gateway        // each address and port once, sorted
	Refused  []RefusedGateway // gateways, or addresses of them, that are not used
	Version  uint64           // of the snapshot in which it last changed
}

// Gateway is an entry of a network, at one address.
type Gateway struct {
	Address  netip.AddrPort
	Locality Locality
	From     []NetworkID // networks whose proxies may enter here, sorted; none: all
	Cause    GatewayCause
	Verdicts []Verdict // what probes found, one of each observer, in their order
}

// GatewayCause is what declared a gateway.
type GatewayCause struct {
	Object ObjectKey // a Network, or a Service of a cluster (group "")
	Shard  ShardKey  // that of the Service; else zero
}

// RefusedGateway is a gateway that is not used, and why.
type RefusedGateway struct {
	Gateway string // an address, a name or a service
	Why     string
	Cause   GatewayCause
}

// Serves reports whether proxies of the network may enter through the gateway.
func (g Gateway) Serves(observer NetworkID) bool {
	return len(g.From) == 0 || slices.Contains(g.From, observer)
}

func (g Gateway) equal(o Gateway) bool {
	return g.Address == o.Address && g.Locality == o.Locality && slices.Equal(g.From, o.From) && g.Cause == o.Cause &&
		slices.EqualFunc(g.Verdicts, o.Verdicts, Verdict.equal)
}

// GatewaysFrom are the gateways through which proxies of the observer's network
// reach this one; GatewayStatesFrom tells why others are excluded. None where the
// network is Gated: they do not reach it.
func (n *Network) GatewaysFrom(observer NetworkID) []Gateway {
	states := n.GatewayStatesFrom(observer)
	if !slices.ContainsFunc(states, func(s GatewayState) bool { return !s.Used() }) {
		return n.Gateways
	}
	var used []Gateway
	for i, g := range n.Gateways {
		if states[i].Used() {
			used = append(used, g)
		}
	}
	return used
}

// equal compares all but Version.
func (n *Network) equal(o *Network) bool {
	return n.ID == o.ID && n.Gated == o.Gated && slices.Equal(n.CIDRs, o.CIDRs) && slices.Equal(n.Clusters, o.Clusters) &&
		slices.EqualFunc(n.Gateways, o.Gateways, Gateway.equal) && slices.Equal(n.Refused, o.Refused)
}

// Network returns the network, if it is known.
func (s *Snapshot) Network(id NetworkID) (*Network, bool) { return s.networks.known(id) }

// Networks yields every known network in the order of their IDs; the default one
// only where something is in it or it has an object.
func (s *Snapshot) Networks() iter.Seq[*Network] {
	return func(yield func(*Network) bool) {
		s.networks.byID.Walk(func(_ string, n *Network) bool { return !yield(n) })
	}
}

// GatewayNames yields the names under which gateways are to be found, each once,
// sorted. An Edit has their addresses.
func (s *Snapshot) GatewayNames() iter.Seq[Hostname] {
	return func(yield func(Hostname) bool) {
		for name := range s.networks.notes.Groups(readNames.Name) {
			if !yield(Hostname(name)) {
				return
			}
		}
	}
}

// Networks is Snapshot.Networks, noted: those too that may come with a cluster or
// an object.
func (r *Reader) Networks() iter.Seq[*Network] {
	smallmap.Add(&r.deps.Clusters, AnyCluster)
	smallmap.Add(&r.deps.Sets, ObjectSet{Kind: NetworkKind, Namespace: AllNamespaces})
	return func(yield func(*Network) bool) {
		for n := range r.snapshot.Networks() {
			smallmap.Add(&r.deps.Networks, n.ID)
			if !yield(n) {
				return
			}
		}
	}
}

// Network is Snapshot.Network, noted.
func (r *Reader) Network(id NetworkID) (*Network, bool) {
	smallmap.Add(&r.deps.Networks, id)
	return r.snapshot.Network(id)
}
