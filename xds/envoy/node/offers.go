package node

import (
	"cmp"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// The resources of services are in the scopes own, private and public, or own and imported.

// namespacedFacets are those of the services for which the node's namespace has rules of its own.
func namespacedFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	if !c.own {
		return all
	}
	return n.offering(all, c, t, Facet{Scope: ScopeNamespaced, Namespace: n.Namespace, Egress: c.egress, Labels: c.labels})
}

func importedFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	if c.egress == "" {
		return all
	}
	return n.offering(all, c, t, Facet{Scope: ScopeImported, Namespace: n.Namespace, Egress: c.egress})
}

func privateFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	if c.egress != "" {
		return all
	}
	return n.offering(all, c, t, Facet{Scope: ScopePrivate, Namespace: n.Namespace})
}

func publicFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	if c.egress != "" {
		return all
	}
	return n.offering(all, c, t, Facet{Scope: ScopePublic})
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

// offering adds the facets of one scope for the services that it covers. base has what the scope
// depends on whatever the type.
func (n Node) offering(all []Facet, c effectiveConfig, t resource.Type, base Facet) []Facet {
	base.GRPC = n.GRPC
	switch t {
	case resource.ClusterType:
		base.Identity, base.Agent = n.Identity && !n.GRPC, n.Agent && !n.GRPC
		if n.balances() {
			balanced := base
			balanced.Balanced = true
			balanced.edit(func(e *Extras) { e.Certificate = c.certificate })
			all = append(all, balanced)
		}
		return append(all, base)
	case resource.EndpointType:
		at := n.endpointFacet(c)
		base.Network, base.Cluster, base.Identity = at.Network, at.Cluster, n.Identity && !n.GRPC
		if n.balances() {
			balanced := base
			balanced.Balanced = true
			all = n.byPlace(all, c, balanced)
		}
		return n.byPlace(all, c, base)
	case resource.ListenerType:
		if n.Type != Sidecar || !n.Capture || n.GRPC {
			return all
		}
		base.Cluster, base.Network = n.Cluster, cmp.Or(c.network, n.Network)
		base.IPv6, base.Automatic = n.hasIPv6(), n.DNSCapture
		base.Outbound, base.EgressProxy = c.outbound, c.egressProxy.cluster
		return append(all, base)
	}
	return all
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
