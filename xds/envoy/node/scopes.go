package node

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Scope says what a facet is about.
type Scope uint8

// The scopes. Each has a row in rows.
const (
	ScopeStatic      Scope = iota + 1 // what is the same for every sidecar
	ScopePublic                       // services that every namespace sees
	ScopePrivate                      // services that differ for this namespace; comes before public
	ScopeImported                     // services that a Sidecar imports; takes the place of the two before
	ScopeOwn                          // services as a namespace's own rules change them; comes before the three
	ScopeCapture                      // the entry of captured outbound connections
	ScopeBound                        // listeners at addresses of their own for what the workload sends; comes before those of services
	ScopeInbound                      // the entry of inbound connections, and how they reach the workload
	ScopeRoutes                       // routes by port, with the short names of a namespace
	ScopeHTTPProxy                    // the explicit HTTP proxy port
	ScopeProxyRoutes                  // routes of the explicit HTTP proxy
	ScopeGateway                      // what Gateways have a proxy listen for
	ScopePassed                       // services to which a router in sni-dnat mode passes connections
	ScopeNames                        // answers to captured DNS requests
	ScopePods                         // pods of headless services in other clusters
	ScopePatched                      // what EnvoyFilters add; comes after all others
	ScopeTargets                      // what gRPC clients dial, with the short names of a namespace
	endOfScopes
)

// Trait is what a scope may have in common with others.
type Trait uint16

// The traits.
const (
	Offers   Trait = 1 << iota // its resources are made of services
	Public                     // of those that everyone sees
	Differs                    // of those that are not as everyone has them
	Prior                      // its resources come before those of scopes that more proxies have
	OwnRules                   // it is built by the rules that a namespace sees, not by those that everyone sees
	Inbound                    // it is about the proxies' own workload

	uniform  // it is the same for every proxy
	entry    // connections to all services go through it
	passes   // its proxies pass connections on for callers of any namespace
	counted  // its proxies count as those of Istio do
	delimits // its names in statistics have delimiters
	logged   // what goes through it is logged and traced
	patched  // EnvoyFilters may change it

	common = counted | delimits | logged | patched
)

// row is what a scope is. The names and the functions that build are in xds/envoy.
type row struct {
	name   string
	covers func(Facet, *federation.Service) bool // whether its resources may be made of the service; nil: of none
	traits Trait
}

var rows = [endOfScopes]row{
	ScopeStatic:      {"static", nil, uniform | delimits | patched},
	ScopePublic:      {"public", coversPublic, common | Offers | Public},
	ScopePrivate:     {"private", coversVisible, common | Offers | Differs | Prior},
	ScopeImported:    {"imported", coversImported, common | Offers},
	ScopeOwn:         {"own", coversImported, common | Offers | OwnRules | Prior},
	ScopeCapture:     {"capture", coversImported, common | entry},
	ScopeBound:       {"bound", coversImported, common},
	ScopeInbound:     {"inbound", coversImported, common | Inbound},
	ScopeRoutes:      {"routes", coversImported, common | OwnRules},
	ScopeHTTPProxy:   {"httpProxy", coversImported, common | entry},
	ScopeProxyRoutes: {"proxyRoutes", coversImported, common | OwnRules},
	ScopeGateway:     {"gateway", coversImported, common | OwnRules},
	ScopePassed:      {"passed", coversInMesh, delimits | patched | passes},
	ScopeNames:       {"names", coversImported, 0},
	ScopePods:        {"pods", coversImported, common},
	ScopePatched:     {"patched", nil, common},
	ScopeTargets:     {"targets", coversImported, counted | delimits | patched | OwnRules},
}

func (s Scope) String() string { return s.row().name }

func (s Scope) row() row {
	if s >= endOfScopes {
		return row{}
	}
	return rows[s]
}

// Has reports whether the facet's scope has the trait.
func (f Facet) Has(t Trait) bool { return f.Scope.row().traits&t != 0 }

// Covers reports whether the facet's resources may be made of the service.
func (f Facet) Covers(s *federation.Service) bool {
	covers := f.Scope.row().covers
	return covers != nil && covers(f, s)
}

func coversPublic(_ Facet, s *federation.Service) bool { return IsPublic(s) }

func coversVisible(f Facet, s *federation.Service) bool { return s.VisibleFrom(f.Namespace) }

func coversInMesh(f Facet, s *federation.Service) bool {
	return !s.MeshExternal && s.VisibleFrom(f.Namespace)
}

func coversImported(f Facet, s *federation.Service) bool {
	return s.VisibleFrom(f.Namespace) && f.Imports(s.Key.Namespace, s.Key.Hostname)
}

// facetsOf are the facets of a proxy for each type of resources that it may have.
var facetsOf = map[resource.Type]func(Node, effectiveConfig) []Facet{
	resource.ClusterType:  Node.clusterFacets,
	resource.EndpointType: Node.endpointFacets,
	resource.ListenerType: Node.listenerFacets,
	resource.RouteType:    Node.routeFacets,
	resource.NamesType: func(n Node, c effectiveConfig) []Facet {
		if !n.AgentNames {
			return nil
		}
		return []Facet{n.namesFacet(c)}
	},
}

// grpcFacetsOf are those of a node that is a gRPC client itself.
var grpcFacetsOf = map[resource.Type]func(Node, effectiveConfig) []Facet{
	resource.ClusterType: func(n Node, c effectiveConfig) []Facet {
		return append([]Facet{{Scope: ScopeStatic, GRPC: true}}, n.offering(c, Facet{GRPC: true})...)
	},
	resource.EndpointType: func(n Node, c effectiveConfig) []Facet {
		return append([]Facet{{Scope: ScopeStatic, GRPC: true}}, n.byPlace(c, n.endpointFacet(c))...)
	},
	resource.ListenerType: func(n Node, c effectiveConfig) []Facet {
		return []Facet{{Scope: ScopeTargets, GRPC: true, Namespace: n.Namespace, Domain: n.Domain, Egress: c.egress, Labels: c.labels}}
	},
	resource.RouteType: func(n Node, c effectiveConfig) []Facet {
		return []Facet{{Scope: ScopeTargets, GRPC: true, Namespace: n.Namespace, Egress: c.egress, Labels: c.labels}}
	},
}

// Asks reports whether nodes such as this ask for the type; Istio's agent alone does for the
// table of names.
func (n Node) Asks(t resource.Type) bool { return t != resource.NamesType || n.AgentNames }

// Facets returns the facets of the node for resources of that type. The node's
// resources are the union of what Build makes for its facets; where Build makes
// a name in several of them, the first facet has it.
func (v View) Facets(t resource.Type) []Facet {
	of := facetsOf[t]
	if v.node.GRPC {
		of = grpcFacetsOf[t]
	}
	if of == nil {
		return nil
	}
	facets := of(v.node, v.config)
	if t == resource.ListenerType {
		facets = v.node.withTelemetry(v.config, facets)
	}
	facets = withDelimiters(v.node, t, withStats(v.node, t, facets))
	facets = v.config.patches.patched(t, facets)
	for i := range facets {
		if !facets[i].Has(uniform) || facets[i].Extras().Patches != "" {
			facets[i].Objects = v.config.objects
		}
	}
	return facets
}

// offering are the facets whose resources are made of services; what is for fewer proxies comes
// first.
func (n Node) offering(c effectiveConfig, base Facet) []Facet {
	var facets []Facet
	if c.own {
		own := base
		own.Scope, own.Namespace = ScopeOwn, n.Namespace
		own.Egress, own.Labels = c.egress, c.labels
		facets = append(facets, own)
	}
	if c.egress != "" {
		imported := base
		imported.Scope, imported.Namespace, imported.Egress = ScopeImported, n.Namespace, c.egress
		return append(facets, imported)
	}
	public, private := base, base
	public.Scope, private.Scope, private.Namespace = ScopePublic, ScopePrivate, n.Namespace
	return append(facets, private, public)
}

func (n Node) clusterFacets(c effectiveConfig) []Facet {
	facets := n.balancing(c, Facet{Identity: n.Identity, Agent: n.Agent}, Node.offering)
	for i := range facets {
		if facets[i].Balanced {
			facets[i].edit(func(e *Extras) { e.Certificate = c.certificate })
		}
	}
	if n.Type == Sidecar {
		facets = append([]Facet{{Scope: ScopeStatic, IPv6: n.hasIPv6()}}, facets...)
	}
	if c.inbound != "" || n.Stats && n.Type == Sidecar {
		facets = append(facets, inboundFacets(n, c)...)
	}
	return append(append(facets, n.gatewayFacets(c)...), append(n.passedFacets(Facet{}), n.podFacets(c)...)...)
}

// gatewayFacets are those of a proxy for which Gateways are.
func (n Node) gatewayFacets(c effectiveConfig) []Facet {
	if n.Type == Sidecar {
		return nil
	}
	return []Facet{{
		Scope: ScopeGateway, Namespace: n.Namespace, Labels: c.labels, IPv6: n.hasIPv6(),
		Identity: n.Identity, Agent: n.Agent, SNIDNAT: n.RouterMode == SNIDNAT,
		extras: Extras{Ports: c.ports.tcp, QUIC: c.ports.quic, Datagrams: c.ports.udp}.ref(),
	}}
}

// podFacets are those of sidecars that may reach pods of other clusters by name.
func (n Node) podFacets(c effectiveConfig) []Facet {
	if n.Type != Sidecar || !n.Capture || !n.DNSCapture || !n.Identity {
		return nil
	}
	return []Facet{{
		Scope: ScopePods, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.egress,
		Identity: true, Agent: n.Agent,
	}}
}

// passedFacets are those of a router in sni-dnat mode for what it passes on.
func (n Node) passedFacets(base Facet) []Facet {
	if n.RouterMode != SNIDNAT {
		return nil
	}
	base.Scope, base.Namespace = ScopePassed, n.Namespace
	return []Facet{base}
}

func (n Node) endpointFacets(c effectiveConfig) []Facet {
	base := n.endpointFacet(c)
	facets := n.passedFacets(base)
	base.Identity = n.Identity
	facets = append(facets, n.podFacets(c)...)
	for _, f := range n.gatewayFacets(c) {
		f.Place, f.Cluster, f.Network = Near, n.Cluster, base.Network
		facets = append(facets, f)
	}
	return append(n.balancing(c, base, Node.byPlace), facets...)
}

// balancing adds to the facets that a gateway shares with sidecars those for the
// services whose callers choose the endpoint: they come first.
func (n Node) balancing(c effectiveConfig, base Facet, of func(Node, effectiveConfig, Facet) []Facet) []Facet {
	shared := of(n, c, base)
	if n.Type == Sidecar || n.GRPC {
		return shared
	}
	base.Balanced = true
	return append(of(n, c, base), shared...)
}

// byPlace are the facets of the endpoints of services: those of which the
// proxy's cluster and locality decide, and the others.
func (n Node) byPlace(c effectiveConfig, base Facet) []Facet {
	here, everywhere := base, base
	here.Place, here.Cluster, here.Locality = Near, n.Cluster, n.Locality
	here.edit(func(e *Extras) { e.Priority = c.priority })
	everywhere.Place = far
	// The order of scopes holds whatever the place: two owners of one hostname may
	// have different ones.
	facets, nearby := n.offering(c, everywhere), n.offering(c, here)
	both := make([]Facet, 0, 2*len(facets))
	for i := range facets {
		both = append(both, facets[i], nearby[i])
	}
	return both
}

// endpointFacet names the cluster only where it decides the network.
func (n Node) endpointFacet(c effectiveConfig) Facet {
	base := Facet{Network: cmp.Or(c.network, n.Network), GRPC: n.GRPC}
	if base.Network == "" {
		base.Cluster = n.Cluster
	}
	return base
}

func (n Node) listenerFacets(c effectiveConfig) []Facet {
	if n.Type != Sidecar {
		return n.gatewayFacets(c)
	}
	var facets []Facet
	if n.Capture {
		facets = append(facets, captureFacet(n, c))
	}
	facets = append(append(facets, inboundFacets(n, c)...), boundFacets(n, c)...)
	if n.Capture {
		facets = append(facets, n.offering(c, Facet{
			Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), IPv6: n.hasIPv6(), Outbound: c.outbound,
			EgressProxy: c.egressProxy.cluster, Automatic: n.DNSCapture,
		})...)
	}
	if n.DNSCapture {
		if !n.AgentNames {
			facets = append(facets, n.namesFacet(c))
		}
		facets = append(facets, n.podFacets(c)...)
	}
	if n.HTTPProxyPort != 0 {
		facets = append(facets, Facet{Scope: ScopeHTTPProxy, Port: n.HTTPProxyPort})
	}
	return facets
}

// inboundCluster is whose endpoints at the proxy's addresses are the proxy's own. A workload that
// registers itself is an endpoint of the mesh, of no cluster that confirms its node.
func (n Node) inboundCluster() federation.ClusterID {
	if n.Group != "" {
		return ""
	}
	return n.Cluster
}

// namesFacet is that of the answers to captured DNS requests, from a listener or an agent.
func (n Node) namesFacet(c effectiveConfig) Facet {
	return Facet{
		Scope: ScopeNames, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.egress,
		IPv6: n.hasIPv6(), Automatic: true, Identity: n.Identity,
	}
}

func (n Node) routeFacets(c effectiveConfig) []Facet {
	if n.Type != Sidecar {
		return n.gatewayFacets(c)
	}
	var facets []Facet
	routes := Facet{
		Scope: ScopeRoutes, Cluster: n.Cluster, Namespace: n.Namespace, Domain: n.Domain,
		Egress: c.egress, Labels: c.labels, Outbound: c.outbound, EgressProxy: c.egressProxy.cluster, Agent: n.Agent,
	}
	facets = append(facets, boundFacets(n, c)...)
	if n.Capture {
		facets = append(facets, routes)
	}
	if n.HTTPProxyPort != 0 {
		routes.Scope = ScopeProxyRoutes
		facets = append(facets, routes)
	}
	return facets
}

func (n Node) addressList() string {
	addresses := make([]string, len(n.Addresses))
	for i, a := range n.Addresses {
		addresses[i] = a.String()
	}
	slices.Sort(addresses)
	return strings.Join(slices.Compact(addresses), ",")
}

func (n Node) hasIPv6() bool { return slices.ContainsFunc(n.Addresses, netip.Addr.Is6) }
