package node

import (
	"cmp"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// The resources of services are in the scopes own, private and public, or own and imported.

// offer is a facet for the services that a scope covers, with what the scope depends on whatever the type; false: the
// node has none.
type offer func(Node, effectiveConfig) (Facet, bool)

// offered are the facets of one scope for the services that it covers.
func offered(of offer) facets {
	all := facets{}
	for t, add := range offers {
		all[t] = func(all []Facet, n Node, c effectiveConfig) []Facet {
			base, has := of(n, c)
			if !has {
				return all
			}
			base.GRPC = n.GRPC
			return add(all, n, c, base)
		}
	}
	return all
}

// namespaced is about services for which the node's namespace has rules of its own.
func namespaced(n Node, c effectiveConfig) (Facet, bool) {
	return Facet{Scope: ScopeNamespaced, Namespace: n.Namespace, Egress: c.egress, Labels: c.labels}, c.own
}

func imported(n Node, c effectiveConfig) (Facet, bool) {
	return Facet{Scope: ScopeImported, Namespace: n.Namespace, Egress: c.egress}, c.egress != ""
}

func private(n Node, c effectiveConfig) (Facet, bool) {
	return Facet{Scope: ScopePrivate, Namespace: n.Namespace}, c.egress == ""
}

func public(_ Node, c effectiveConfig) (Facet, bool) {
	return Facet{Scope: ScopePublic}, c.egress == ""
}

// Shared are the facets that more proxies have and whose resources come after those of this one.
func (f Facet) Shared() []Facet {
	f.Labels = ""
	public := f
	public.Scope, public.Namespace = ScopePublic, ""
	switch {
	case f.Has(Differs):
		return []Facet{public}
	case f.Egress != "":
		f.Scope = ScopeImported
		return []Facet{f}
	}
	f.Scope = ScopePrivate
	return []Facet{f, public}
}

// offers adds the facets for resources of a type, from what the scope depends on.
var offers = map[resource.Type]func(all []Facet, n Node, c effectiveConfig, base Facet) []Facet{
	resource.ClusterType: func(all []Facet, n Node, c effectiveConfig, base Facet) []Facet {
		base.Identity, base.Agent = n.Identity && !n.GRPC, n.Agent && !n.GRPC
		if n.balances() {
			balanced := base
			balanced.Balanced = true
			balanced.edit(func(e *Extras) { e.Certificate = c.certificate })
			all = append(all, balanced)
		}
		return append(all, base)
	},
	resource.EndpointType: func(all []Facet, n Node, c effectiveConfig, base Facet) []Facet {
		at := n.endpointFacet(c)
		base.Network, base.Cluster, base.Identity = at.Network, at.Cluster, n.Identity && !n.GRPC
		if n.balances() {
			balanced := base
			balanced.Balanced = true
			all = n.byPlace(all, c, balanced)
		}
		return n.byPlace(all, c, base)
	},
	resource.ListenerType: func(all []Facet, n Node, c effectiveConfig, base Facet) []Facet {
		if n.Type != Sidecar || !n.Capture || n.GRPC {
			return all
		}
		base.Cluster, base.Network, base.Agent = n.Cluster, cmp.Or(c.network, n.Network), n.Agent
		base.IPv6, base.Automatic = n.hasIPv6(), n.DNSCapture
		base.Outbound, base.EgressProxy = c.outbound, c.egressProxy.cluster
		return append(all, base)
	},
}

// balances reports whether the node is a gateway. Beside the facets that it shares with sidecars it has those for
// the services whose callers choose the endpoint: they come first.
func (n Node) balances() bool { return n.Type != Sidecar && !n.GRPC }

// byPlace adds the facets of the endpoints of services: those of which the
// proxy's cluster and locality decide, and the others. The order of scopes holds whatever the
// place: two owners of one hostname may have different ones.
func (n Node) byPlace(all []Facet, c effectiveConfig, base Facet) []Facet {
	here, everywhere := base, base
	here.Place, here.Cluster, here.Locality = Near, n.Cluster, n.Locality
	here.edit(func(e *Extras) { e.Priority = c.priority })
	everywhere.Place = far
	return append(all, everywhere, here)
}

// endpointFacet names the cluster only where it decides the network.
func (n Node) endpointFacet(c effectiveConfig) Facet {
	base := Facet{Network: cmp.Or(c.network, n.Network)}
	if base.Network == "" {
		base.Cluster = n.Cluster
	}
	return base
}
