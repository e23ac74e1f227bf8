package node

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Scope says what a facet is about.
type Scope string

// The scopes.
const (
	ScopeStatic      Scope = "static"      // what is the same for every sidecar
	ScopePublic      Scope = "public"      // services that every namespace sees
	ScopePrivate     Scope = "private"     // what of services is another for this namespace than for everyone; comes before public
	ScopeImported    Scope = "imported"    // services that a Sidecar imports; takes the place of the two before
	ScopeOwn         Scope = "own"         // what a namespace's own rules make of services; comes before the three
	ScopeCapture     Scope = "capture"     // the entry of captured outbound connections
	ScopeInbound     Scope = "inbound"     // the entry of captured inbound connections
	ScopeRoutes      Scope = "routes"      // routes by port, with the short names of a namespace
	ScopeHTTPProxy   Scope = "httpProxy"   // the explicit HTTP proxy port
	ScopeProxyRoutes Scope = "proxyRoutes" // routes of the explicit HTTP proxy
	ScopeGateway     Scope = "gateway"     // what Gateways have a proxy listen for
	ScopePassed      Scope = "passed"      // services to which a router in sni-dnat mode passes connections
	ScopeNames       Scope = "names"       // answers to captured DNS requests
	ScopePods        Scope = "pods"        // pods of headless services in other clusters
	ScopeTargets     Scope = "targets"     // what gRPC clients dial, with the short names of a namespace
)

// Facet is the smallest comparable part of a proxy that a set of resources
// depends on. Fields that do not matter to its scope are zero. It is a valid map
// key; others have no reason to look inside.
type Facet struct {
	Scope     Scope
	Cluster   federation.ClusterID
	Network   federation.NetworkID
	Namespace string
	Domain    string
	Addresses string // sorted, joined by commas
	Port      uint16
	Ports     string              // where gateways listen for ports of their services: PORT=TARGET, sorted, joined by commas
	IPv6      bool                // the proxies have IPv6 addresses
	GRPC      bool                // there is no proxy: the client's own gRPC asks
	Place     string              // near, far, or empty where places do not matter
	Locality  federation.Locality // of the proxies
	Identity  bool                // the proxies have an identity of the mesh
	Agent     bool                // it comes from Istio's agent beside them
	SNIDNAT   bool                // the proxies are routers in sni-dnat mode
	Balanced  bool                // services whose callers choose the endpoint, for gateways, which have no such callers
	Automatic bool                // DNS capture: callers know services by automatic VIPs
	// What configuration makes of the proxy.
	Egress   string                  // what a Sidecar imports: lists, joined by semicolons, of NAMESPACE/HOST and of ~NAMESPACE/HOST, which excludes; empty: everything
	Labels   string                  // those of the proxy's labels that decide about anything: KEY=VALUE, sorted, joined by commas
	Outbound federation.OutboundMode // empty: ALLOW_ANY
}

func (f Facet) String() string {
	parts := []string{string(f.Scope)}
	for _, p := range []struct{ key, value string }{
		{"cluster", string(f.Cluster)},
		{"network", string(f.Network)},
		{"namespace", f.Namespace},
		{"domain", f.Domain},
		{"addresses", f.Addresses},
		{"egress", f.Egress},
		{"labels", f.Labels},
		{"outbound", string(f.Outbound)},
		{"ports", f.Ports},
		{"place", f.Place},
		{"locality", strings.TrimRight(f.Locality.String(), "/")},
	} {
		if p.value != "" {
			parts = append(parts, p.key+"="+p.value)
		}
	}
	if f.Port != 0 {
		parts = append(parts, fmt.Sprintf("port=%d", f.Port))
	}
	for flag, is := range f.flags() {
		if is {
			parts = append(parts, flag)
		}
	}
	return strings.Join(parts, " ")
}

func (f Facet) flags() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		_ = yield("ipv6", f.IPv6) && yield("grpc", f.GRPC) && yield("identity", f.Identity) && yield("agent", f.Agent) && yield("sni-dnat", f.SNIDNAT) &&
			yield("automatic", f.Automatic) && yield("balanced", f.Balanced)
	}
}

// Offers tells that the facet's resources stand for services.
func (f Facet) Offers() bool {
	switch f.Scope {
	case ScopePublic, ScopePrivate, ScopeImported, ScopeOwn:
		return true
	}
	return false
}

// Covers tells that the facet's resources may stand for the service.
func (f Facet) Covers(s *federation.Service) bool {
	switch f.Scope {
	case ScopePublic:
		return IsPublic(s)
	case ScopePrivate:
		return s.VisibleFrom(f.Namespace)
	case ScopePassed:
		return !s.MeshExternal && s.VisibleFrom(f.Namespace)
	case ScopeNames, ScopePods, ScopeRoutes, ScopeProxyRoutes, ScopeTargets, ScopeImported, ScopeOwn, ScopeGateway:
		return s.VisibleFrom(f.Namespace) && f.Imports(s.Key.Namespace, s.Key.Hostname)
	}
	return false
}

// Imports tells that the facet's Sidecar, if it has one, wants what the
// namespace has for the host, which may be a wildcard.
func (f Facet) Imports(namespace string, host federation.Hostname) bool {
	if f.Egress == "" {
		return true
	}
	for list := range strings.SplitSeq(f.Egress, ";") {
		if listImports(list, namespace, host) {
			return true
		}
	}
	return false
}

// listImports tells that one of the list has the host, and that none excludes it.
func listImports(list, namespace string, host federation.Hostname) bool {
	imported := false
	for want := range strings.SplitSeq(list, ",") {
		want, excludes := strings.CutPrefix(want, "~")
		ns, pattern, _ := strings.Cut(want, "/")
		if (ns == "*" || ns == namespace) && resource.Covers(pattern, string(host)) {
			if excludes {
				return false
			}
			imported = true
		}
	}
	return imported
}

// IsPublic tells that proxies of every namespace see the service.
func IsPublic(s *federation.Service) bool {
	return len(s.ExportTo) == 0 || slices.Contains(s.ExportTo, "*")
}

// offering are the facets that stand for services; what is for fewer proxies comes
// first.
func (n Node) offering(c bearing, base Facet) []Facet {
	var facets []Facet
	if c.own {
		own := base
		own.Scope, own.Namespace, own.Egress, own.Labels = ScopeOwn, n.Namespace, c.egress, c.labels
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

func (n Node) clusterFacets(c bearing) []Facet {
	facets := n.balancing(c, Facet{Identity: n.Identity, Agent: n.Agent}, Node.offering)
	if n.Type == Sidecar {
		facets = append([]Facet{{Scope: ScopeStatic, IPv6: n.hasIPv6()}}, facets...)
	}
	return append(append(facets, n.gatewayFacets(c)...), append(n.passedFacets(Facet{}), n.podFacets(c)...)...)
}

// gatewayFacets are those of a proxy for which Gateways are.
func (n Node) gatewayFacets(c bearing) []Facet {
	if n.Type == Sidecar {
		return nil
	}
	return []Facet{{
		Scope: ScopeGateway, Namespace: n.Namespace, Labels: c.labels, Ports: c.ports, IPv6: n.hasIPv6(),
		Identity: n.Identity, Agent: n.Agent, SNIDNAT: n.RouterMode == SNIDNAT,
	}}
}

// podFacets are those of sidecars that may reach pods of other clusters by name.
func (n Node) podFacets(c bearing) []Facet {
	if n.Type != Sidecar || !n.Capture || !n.DNSCapture || !n.Identity {
		return nil
	}
	return []Facet{{Scope: ScopePods, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.egress, Identity: true, Agent: n.Agent}}
}

// passedFacets are those of a router in sni-dnat mode for what it passes on.
func (n Node) passedFacets(base Facet) []Facet {
	if n.RouterMode != SNIDNAT {
		return nil
	}
	base.Scope, base.Namespace = ScopePassed, n.Namespace
	return []Facet{base}
}

func (n Node) endpointFacets(c bearing) []Facet {
	base := n.endpointFacet(c)
	facets := n.passedFacets(base)
	base.Identity = n.Identity
	return append(n.balancing(c, base, Node.byPlace), append(facets, n.podFacets(c)...)...)
}

// balancing adds to the facets that a gateway shares with sidecars those for the
// services whose callers choose the endpoint: they come first.
func (n Node) balancing(c bearing, base Facet, of func(Node, bearing, Facet) []Facet) []Facet {
	shared := of(n, c, base)
	if n.Type == Sidecar || n.GRPC {
		return shared
	}
	base.Balanced = true
	return append(of(n, c, base), shared...)
}

// byPlace are the facets of endpoints that stand for services: those of which the
// proxy's cluster and locality decide, and the others.
func (n Node) byPlace(c bearing, base Facet) []Facet {
	here, everywhere := base, base
	here.Place, here.Cluster, here.Locality = Near, n.Cluster, n.Locality
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
func (n Node) endpointFacet(c bearing) Facet {
	base := Facet{Network: cmp.Or(c.network, n.Network), GRPC: n.GRPC}
	if base.Network == "" {
		base.Cluster = n.Cluster
	}
	return base
}

func (n Node) listenerFacets(c bearing) []Facet {
	if n.Type != Sidecar {
		return n.gatewayFacets(c)
	}
	var facets []Facet
	if n.Capture {
		inbound := Facet{Scope: ScopeInbound, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Addresses: n.addressList(), IPv6: n.hasIPv6(), Identity: n.Identity, Agent: n.Agent}
		facets = append(facets, Facet{Scope: ScopeCapture, IPv6: n.hasIPv6(), Outbound: c.outbound}, inbound)
		facets = append(facets, n.offering(c, Facet{
			Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), IPv6: n.hasIPv6(), Outbound: c.outbound, Automatic: n.DNSCapture,
		})...)
	}
	if n.DNSCapture {
		facets = append(facets, Facet{
			Scope: ScopeNames, Cluster: n.Cluster, Network: cmp.Or(c.network, n.Network), Namespace: n.Namespace, Egress: c.egress,
			IPv6: n.hasIPv6(), Automatic: true, Identity: n.Identity,
		})
		facets = append(facets, n.podFacets(c)...)
	}
	if n.HTTPProxyPort != 0 {
		facets = append(facets, Facet{Scope: ScopeHTTPProxy, Port: n.HTTPProxyPort})
	}
	return facets
}

func (n Node) routeFacets(c bearing) []Facet {
	if n.Type != Sidecar {
		return n.gatewayFacets(c)
	}
	var facets []Facet
	routes := Facet{
		Scope: ScopeRoutes, Cluster: n.Cluster, Namespace: n.Namespace, Domain: n.Domain,
		Egress: c.egress, Labels: c.labels, Outbound: c.outbound,
	}
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

// What a proxy is given of a service may depend on where the proxy is: on its
// cluster, where the service is cluster-local; on its locality, where endpoints
// nearby come first. Such services have facets of their own (place near), so that
// proxies everywhere share what is the same everywhere (place far).
const (
	Near = "near"
	far  = "far"
)

// OwnNamespace is the one whose services come first for the facet's proxies. A
// router passes connections on for callers of any namespace.
func (f Facet) OwnNamespace() string {
	if f.Scope == ScopePassed {
		return ""
	}
	return f.Namespace
}

// At is where the proxies are, for the queries of a snapshot.
func (f Facet) At() federation.Place {
	p := federation.Place{Cluster: f.Cluster, Network: f.Network}
	for text := range strings.SplitSeq(f.Addresses, ",") {
		if addr, err := netip.ParseAddr(text); err == nil {
			p.Addresses = append(p.Addresses, addr)
		}
	}
	return p
}

// grpcFacets are those of a node that is a gRPC client itself.
func (n Node) grpcFacets(t resource.Type, c bearing) []Facet {
	switch t {
	case resource.ClusterType:
		return append([]Facet{{Scope: ScopeStatic, GRPC: true}}, n.offering(c, Facet{GRPC: true})...)
	case resource.EndpointType:
		return append([]Facet{{Scope: ScopeStatic, GRPC: true}}, n.byPlace(c, n.endpointFacet(c))...)
	case resource.ListenerType:
		return []Facet{{Scope: ScopeTargets, GRPC: true, Namespace: n.Namespace, Domain: n.Domain, Egress: c.egress, Labels: c.labels}}
	case resource.RouteType:
		return []Facet{{Scope: ScopeTargets, GRPC: true, Namespace: n.Namespace, Egress: c.egress, Labels: c.labels}}
	}
	return nil
}
