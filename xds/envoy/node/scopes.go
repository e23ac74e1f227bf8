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
	resolves  // its proxies resolve names

	common = counted | delimits | logged | patched
)

// row is what a scope is. What its resources are and how they are built is in the scope's row in
// xds/envoy: builders read facets, so that they are above this room.
type row struct {
	name   string
	traits Trait
	covers func(Facet, *federation.Service) bool // whether its resources may be made of the service; nil: of none
	// proxies and clients are the facets of a proxy, and of a gRPC client that has no proxy.
	proxies, clients facets
}

// facets has what adds the facets of a node for resources of a type; none: it has no such resources.
type facets map[resource.Type]facetsOf

// facetsOf adds the facets of a node for resources of one type.
type facetsOf func(all []Facet, n Node, c effectiveConfig) []Facet

// each is the same facets for resources of several types.
func each(of facetsOf, types ...resource.Type) facets {
	all := facets{}
	for _, t := range types {
		all[t] = of
	}
	return all
}

var rows = [endOfScopes]row{
	ScopeStatic: {
		"static", uniform | delimits | patched, nil,
		each(staticFacets, resource.ClusterType), each(grpcStaticFacets, resource.TypesWith(resource.Destinations)...),
	},
	ScopeCapture: {"capture", common | entry, coversImported, each(captureFacets, resource.ListenerType), nil},
	ScopeInbound: {"inbound", common | Inbound | Receives, coversImported, inboundFacets, nil},
	ScopeBound: {
		"bound", common | NamespaceRules | resolves, coversImported, each(boundFacets, resource.ListenerType, resource.RouteType), nil,
	},
	ScopeNamespaced: {
		"namespaced", common | Offers | NamespaceRules | RulesDiffer | Prior | resolves, coversImported,
		offered(namespaced), offered(namespaced),
	},
	ScopeImported: {"imported", common | Offers | resolves, coversImported, offered(imported), offered(imported)},
	ScopePrivate:  {"private", common | Offers | Differs | Prior | resolves, coversVisible, offered(private), offered(private)},
	ScopePublic:   {"public", common | Offers | Public | resolves, coversPublic, offered(public), offered(public)},
	ScopeGateway:  {"gateway", common | NamespaceRules | Receives | ClaimRoutes | resolves, coversImported, gatewayFacets, nil},
	ScopePassed:   {"passed", delimits | patched | passes, coversInMesh, passedFacets, nil},
	ScopeNames:    {"names", 0, coversImported, namesFacets, nil},
	ScopePods: {
		"pods", common, coversImported,
		each(podFacets, resource.ClusterType, resource.EndpointType, resource.ListenerType), nil,
	},
	ScopeRoutes:      {"routes", common | NamespaceRules, coversImported, each(routeFacets, resource.RouteType), nil},
	ScopeHTTPProxy:   {"httpProxy", common | entry | resolves, coversImported, each(httpProxyFacets, resource.ListenerType), nil},
	ScopeProxyRoutes: {"proxyRoutes", common | NamespaceRules | namesPort, coversImported, each(proxyRouteFacets, resource.RouteType), nil},
	ScopeTargets:     {"targets", counted | delimits | patched | NamespaceRules, coversImported, nil, targetFacets},
	ScopePatched:     {"patched", Added, nil, patchedFacets, nil},
}

// types has what a type of resource has of the rows.
var types = typesOf(rows)

type typeRow struct {
	// proxies and clients add the facets of a proxy, and of a gRPC client, in the order of the scopes.
	proxies, clients []facetsOf
	// marks note in the facets on what else of the node resources of the type depend.
	marks []func(Node, effectiveConfig, []Facet)
}

func typesOf(rows [endOfScopes]row) map[resource.Type]*typeRow {
	all := map[resource.Type]*typeRow{}
	for _, known := range resource.Types {
		t := &typeRow{marks: marks[known.Type]}
		for _, r := range rows {
			if of := r.proxies[known.Type]; of != nil {
				t.proxies = append(t.proxies, of)
			}
			if of := r.clients[known.Type]; of != nil {
				t.clients = append(t.clients, of)
			}
		}
		all[known.Type] = t
	}
	return all
}

// marks has what is noted in the facets for resources of a type, whatever their scope; their scopes' traits say in
// which.
var marks = map[resource.Type][]func(Node, effectiveConfig, []Facet){
	resource.ClusterType:  {markStats, markDelimiters, markLookup, markClusterPatches},
	resource.EndpointType: {markStats},
	resource.ListenerType: {markTelemetry, markStats, markDelimiters, markSettings, markLookup, markListenerPatches},
	resource.RouteType:    {markRoutePatches},
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

// Asks reports whether nodes such as this ask for the type.
func (n Node) Asks(t resource.Type) bool { return !t.Has(resource.ForAgents) || n.AgentNames }

// Facets returns the facets of the node for resources of that type. The node's
// resources are the union of what Build makes for its facets; where Build makes
// a name in several of them, the first facet has it.
func (v View) Facets(t resource.Type) []Facet {
	row := types[t]
	if row == nil {
		return nil
	}
	from := row.proxies
	if v.node.GRPC {
		from = row.clients
	}
	var facets []Facet
	for _, of := range from {
		facets = of(facets, v.node, v.config)
	}
	for _, mark := range row.marks {
		mark(v.node, v.config, facets)
	}
	for i := range facets {
		if !facets[i].Has(uniform) || facets[i].Extras().Patches != "" {
			facets[i].Objects = v.config.objects
		}
	}
	return facets
}

// staticFacets is that of what every sidecar has.
func staticFacets(all []Facet, n Node, _ effectiveConfig) []Facet {
	if n.Type != Sidecar {
		return all
	}
	return append(all, Facet{Scope: ScopeStatic, IPv6: n.hasIPv6()})
}

// grpcStaticFacets is that of what every gRPC client has.
func grpcStaticFacets(all []Facet, _ Node, _ effectiveConfig) []Facet {
	return append(all, Facet{Scope: ScopeStatic, GRPC: true})
}

// gatewayFacets are those of a proxy for which Gateways are.
var gatewayFacets = facets{
	resource.ClusterType: frontedFacets,
	resource.ListenerType: func(all []Facet, n Node, c effectiveConfig) []Facet {
		before := len(all)
		all = frontedFacets(all, n, c)
		for i := range all[before:] {
			all[before+i].edit(func(e *Extras) { e.Topology = n.Settings.Topology })
		}
		return all
	},
	resource.RouteType: frontedFacets,
	resource.EndpointType: func(all []Facet, n Node, c effectiveConfig) []Facet {
		before := len(all)
		all = frontedFacets(all, n, c)
		for i := range all[before:] {
			f := &all[before+i]
			f.Place, f.Cluster, f.Network = Near, n.Cluster, n.endpointFacet(c).Network
		}
		return all
	},
}

func frontedFacets(all []Facet, n Node, c effectiveConfig) []Facet {
	if n.Type == Sidecar {
		return all
	}
	return append(all, Facet{
		Scope: ScopeGateway, Namespace: n.Namespace, Labels: c.labels, IPv6: n.hasIPv6(),
		Identity: n.Identity, Agent: n.Agent, SNIDNAT: n.RouterMode == SNIDNAT,
		extras: Extras{Ports: c.ports.tcp, QUIC: c.ports.quic, Datagrams: c.ports.udp}.ref(),
	})
}

// passedFacets are those of a router in sni-dnat mode for what it passes on.
var passedFacets = facets{
	resource.ClusterType:  func(all []Facet, n Node, _ effectiveConfig) []Facet { return appendPassed(all, n, Facet{}) },
	resource.EndpointType: func(all []Facet, n Node, c effectiveConfig) []Facet { return appendPassed(all, n, n.endpointFacet(c)) },
}

func appendPassed(all []Facet, n Node, f Facet) []Facet {
	if n.RouterMode != SNIDNAT {
		return all
	}
	f.Scope, f.Namespace = ScopePassed, n.Namespace
	return append(all, f)
}

// podFacets are those of sidecars that may reach pods of other clusters by name.
func podFacets(all []Facet, n Node, c effectiveConfig) []Facet {
	if n.Type != Sidecar || !n.Capture || !n.DNSCapture || !n.Identity {
		return all
	}
	return append(all, Facet{
		Scope: ScopePods, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.imports,
		Identity: true, Agent: n.Agent,
	})
}

// namesFacets is that of the answers to captured DNS requests, from a listener or an agent.
var namesFacets = facets{
	resource.ListenerType: func(all []Facet, n Node, c effectiveConfig) []Facet {
		if n.Type != Sidecar || !n.DNSCapture || n.AgentNames {
			return all
		}
		return append(all, n.namesFacet(c))
	},
	resource.NamesType: func(all []Facet, n Node, c effectiveConfig) []Facet {
		if !n.AgentNames {
			return all
		}
		return append(all, n.namesFacet(c))
	},
}

func (n Node) namesFacet(c effectiveConfig) Facet {
	return Facet{
		Scope: ScopeNames, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.imports,
		IPv6: n.hasIPv6(), Automatic: true, Identity: n.Identity,
	}
}

// routeFacets is that of the routes of captured requests.
func routeFacets(all []Facet, n Node, c effectiveConfig) []Facet {
	if n.Type != Sidecar || !n.Capture {
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
func httpProxyFacets(all []Facet, n Node, _ effectiveConfig) []Facet {
	if n.Type != Sidecar || n.HTTPProxyPort == 0 {
		return all
	}
	return append(all, Facet{Scope: ScopeHTTPProxy, Port: n.HTTPProxyPort})
}

// proxyRouteFacets is that of its routes.
func proxyRouteFacets(all []Facet, n Node, c effectiveConfig) []Facet {
	if n.Type != Sidecar || n.HTTPProxyPort == 0 {
		return all
	}
	return append(all, n.outboundRoutes(c, ScopeProxyRoutes))
}

// targetFacets are those of what gRPC clients dial.
var targetFacets = facets{
	resource.ListenerType: func(all []Facet, n Node, c effectiveConfig) []Facet {
		f := n.targetFacet(c)
		f.Domain = n.Domain
		return append(all, f)
	},
	resource.RouteType: func(all []Facet, n Node, c effectiveConfig) []Facet { return append(all, n.targetFacet(c)) },
}

func (n Node) targetFacet(c effectiveConfig) Facet {
	return Facet{Scope: ScopeTargets, GRPC: true, Namespace: n.Namespace, Egress: c.egress, Labels: c.labels}
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
