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

// The scopes, in the order of precedence: where several build a name, the first has it. Each
// has a row in rows.
const (
	ScopeStatic      Scope = iota + 1 // what is the same for every sidecar
	ScopeCapture                      // the entry of captured outbound connections
	ScopeInbound                      // the entry of inbound connections, and how they reach the workload
	ScopeBound                        // listeners at addresses of their own for what the workload sends
	ScopeNamespaced                   // services as a namespace's own rules change them
	ScopeImported                     // services that a Sidecar imports; takes the place of the next two
	ScopePrivate                      // services that differ for this namespace
	ScopePublic                       // services that every namespace sees
	ScopeGateway                      // what Gateways have a proxy listen for
	ScopePassed                       // services to which a router in sni-dnat mode passes connections
	ScopeNames                        // answers to captured DNS requests
	ScopePods                         // pods of headless services in other clusters
	ScopeRoutes                       // routes by port, with the short names of a namespace
	ScopeHTTPProxy                    // the explicit HTTP proxy port
	ScopeProxyRoutes                  // routes of the explicit HTTP proxy
	ScopeTargets                      // what gRPC clients dial, with the short names of a namespace
	ScopePatched                      // what EnvoyFilters add
	endOfScopes
)

// Trait is what a scope may have in common with others. What depends on a scope asks for a trait.
type Trait uint32

// The traits.
const (
	Offers         Trait = 1 << iota // its resources are made of services
	Public                           // of those that everyone sees
	Differs                          // of those that are not as everyone has them
	RulesDiffer                      // of those for which the namespace sees other rules than everyone
	Prior                            // its resources come before those of scopes that more proxies have
	NamespaceRules                   // it is built by the rules that a namespace sees, not by those that everyone sees
	Inbound                          // it is about the proxies' own workload
	Receives                         // it receives requests: callers choose the host that they name
	ClaimRoutes                      // its requests are routed by claims of their tokens
	Added                            // EnvoyFilters add it, so that they do not change it again

	uniform   // it is the same for every proxy
	entry     // connections to all services go through it
	namesPort // its requests name their port
	passes    // its proxies pass connections on for callers of any namespace
	counted   // its proxies count as those of Istio do
	delimits  // its names in statistics have delimiters
	logged    // what goes through it is logged and traced
	patched   // EnvoyFilters may change it

	common = counted | delimits | logged | patched
)

// row is what a scope is. What its resources are and how they are built is in the scope's row in
// xds/envoy: builders read facets, so that they are above this room.
type row struct {
	name   string
	traits Trait
	covers func(Facet, *federation.Service) bool // whether its resources may be made of the service; nil: of none
	// proxies and clients are the facets of a proxy, and of a gRPC client that has no proxy; nil: there are none.
	proxies, clients facetsOf
}

// facetsOf adds the facets of a node for resources of a type.
type facetsOf func(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet

var rows = [endOfScopes]row{
	ScopeStatic:      {"static", uniform | delimits | patched, nil, staticFacets, grpcStaticFacets},
	ScopeCapture:     {"capture", common | entry, coversImported, captureFacets, nil},
	ScopeInbound:     {"inbound", common | Inbound | Receives, coversImported, inboundFacets, nil},
	ScopeBound:       {"bound", common | NamespaceRules, coversImported, boundFacets, nil},
	ScopeNamespaced:  {"namespaced", common | Offers | NamespaceRules | RulesDiffer | Prior, coversImported, namespacedFacets, namespacedFacets},
	ScopeImported:    {"imported", common | Offers, coversImported, importedFacets, importedFacets},
	ScopePrivate:     {"private", common | Offers | Differs | Prior, coversVisible, privateFacets, privateFacets},
	ScopePublic:      {"public", common | Offers | Public, coversPublic, publicFacets, publicFacets},
	ScopeGateway:     {"gateway", common | NamespaceRules | Receives | ClaimRoutes, coversImported, gatewayFacets, nil},
	ScopePassed:      {"passed", delimits | patched | passes, coversInMesh, passedFacets, nil},
	ScopeNames:       {"names", 0, coversImported, namesFacets, nil},
	ScopePods:        {"pods", common, coversImported, podFacets, nil},
	ScopeRoutes:      {"routes", common | NamespaceRules, coversImported, routeFacets, nil},
	ScopeHTTPProxy:   {"httpProxy", common | entry, coversImported, httpProxyFacets, nil},
	ScopeProxyRoutes: {"proxyRoutes", common | NamespaceRules | namesPort, coversImported, proxyRouteFacets, nil},
	ScopeTargets:     {"targets", counted | delimits | patched | NamespaceRules, coversImported, nil, targetFacets},
	ScopePatched:     {"patched", Added, nil, patchedFacets, nil},
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

func coversInMesh(f Facet, s *federation.Service) bool { return InMesh(s, f.Namespace) }

// InMesh reports whether the service is one of the mesh that the namespace may know of.
func InMesh(s *federation.Service, namespace string) bool {
	return !s.MeshExternal && s.VisibleFrom(namespace)
}

func coversImported(f Facet, s *federation.Service) bool {
	return s.VisibleFrom(f.Namespace) && f.Imports(s.Key.Namespace, s.Key.Hostname)
}

// Asks reports whether nodes such as this ask for the type; Istio's agent alone does for the
// table of names.
func (n Node) Asks(t resource.Type) bool { return t != resource.NamesType || n.AgentNames }

// Facets returns the facets of the node for resources of that type. The node's
// resources are the union of what Build makes for its facets; where Build makes
// a name in several of them, the first facet has it.
func (v View) Facets(t resource.Type) []Facet {
	var facets []Facet
	for i := range rows {
		of := rows[i].proxies
		if v.node.GRPC {
			of = rows[i].clients
		}
		if of != nil {
			facets = of(facets, v.node, v.config, t)
		}
	}
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

// staticFacets is that of what every sidecar has.
func staticFacets(all []Facet, n Node, _ effectiveConfig, t resource.Type) []Facet {
	if t != resource.ClusterType || n.Type != Sidecar {
		return all
	}
	return append(all, Facet{Scope: ScopeStatic, IPv6: n.hasIPv6()})
}

// grpcStaticFacets is that of what every gRPC client has.
func grpcStaticFacets(all []Facet, _ Node, _ effectiveConfig, t resource.Type) []Facet {
	if t != resource.ClusterType && t != resource.EndpointType {
		return all
	}
	return append(all, Facet{Scope: ScopeStatic, GRPC: true})
}

// gatewayFacets are those of a proxy for which Gateways are.
func gatewayFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	types := []resource.Type{resource.ClusterType, resource.EndpointType, resource.ListenerType, resource.RouteType}
	if n.Type == Sidecar || !slices.Contains(types, t) {
		return all
	}
	f := Facet{
		Scope: ScopeGateway, Namespace: n.Namespace, Labels: c.labels, IPv6: n.hasIPv6(),
		Identity: n.Identity, Agent: n.Agent, SNIDNAT: n.RouterMode == SNIDNAT,
		extras: Extras{Ports: c.ports.tcp, QUIC: c.ports.quic, Datagrams: c.ports.udp}.ref(),
	}
	if t == resource.EndpointType {
		f.Place, f.Cluster, f.Network = Near, n.Cluster, n.endpointFacet(c).Network
	}
	return append(all, f)
}

// passedFacets are those of a router in sni-dnat mode for what it passes on.
func passedFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	var f Facet
	switch {
	case n.RouterMode != SNIDNAT:
		return all
	case t == resource.EndpointType:
		f = n.endpointFacet(c)
	case t != resource.ClusterType:
		return all
	}
	f.Scope, f.Namespace = ScopePassed, n.Namespace
	return append(all, f)
}

// podFacets are those of sidecars that may reach pods of other clusters by name.
func podFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	types := []resource.Type{resource.ClusterType, resource.EndpointType, resource.ListenerType}
	if n.Type != Sidecar || !n.Capture || !n.DNSCapture || !n.Identity || !slices.Contains(types, t) {
		return all
	}
	return append(all, Facet{
		Scope: ScopePods, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.egress,
		Identity: true, Agent: n.Agent,
	})
}

// namesFacets is that of the answers to captured DNS requests, from a listener or an agent.
func namesFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	byListener := t == resource.ListenerType && n.Type == Sidecar && n.DNSCapture && !n.AgentNames
	if !byListener && (t != resource.NamesType || !n.AgentNames) {
		return all
	}
	return append(all, Facet{
		Scope: ScopeNames, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.egress,
		IPv6: n.hasIPv6(), Automatic: true, Identity: n.Identity,
	})
}

// routeFacets is that of the routes of captured requests.
func routeFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	if t != resource.RouteType || n.Type != Sidecar || !n.Capture {
		return all
	}
	return append(all, n.outboundRoutes(c, ScopeRoutes))
}

func (n Node) outboundRoutes(c effectiveConfig, s Scope) Facet {
	return Facet{
		Scope: s, Cluster: n.Cluster, Namespace: n.Namespace, Domain: n.Domain,
		Egress: c.egress, Labels: c.labels, Outbound: c.outbound, EgressProxy: c.egressProxy.cluster, Agent: n.Agent,
	}
}

// httpProxyFacets is that of the listener of the explicit HTTP proxy.
func httpProxyFacets(all []Facet, n Node, _ effectiveConfig, t resource.Type) []Facet {
	if t != resource.ListenerType || n.Type != Sidecar || n.HTTPProxyPort == 0 {
		return all
	}
	return append(all, Facet{Scope: ScopeHTTPProxy, Port: n.HTTPProxyPort})
}

// proxyRouteFacets is that of its routes.
func proxyRouteFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	if t != resource.RouteType || n.Type != Sidecar || n.HTTPProxyPort == 0 {
		return all
	}
	return append(all, n.outboundRoutes(c, ScopeProxyRoutes))
}

// targetFacets are those of what gRPC clients dial.
func targetFacets(all []Facet, n Node, c effectiveConfig, t resource.Type) []Facet {
	f := Facet{Scope: ScopeTargets, GRPC: true, Namespace: n.Namespace, Egress: c.egress, Labels: c.labels}
	switch t {
	case resource.ListenerType:
		f.Domain = n.Domain
	case resource.RouteType:
	default:
		return all
	}
	return append(all, f)
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
