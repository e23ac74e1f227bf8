package envoy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// Scope says what a facet is about.
type Scope string

const (
	scopeStatic      Scope = "static"      // what is the same for every sidecar
	scopePublic      Scope = "public"      // services that every namespace sees
	scopePrivate     Scope = "private"     // services that not every namespace sees, but this one does
	scopeCapture     Scope = "capture"     // the entry of captured outbound connections
	scopeInbound     Scope = "inbound"     // the entry of captured inbound connections
	scopeRoutes      Scope = "routes"      // routes by port, with the short names of a namespace
	scopeHTTPProxy   Scope = "httpProxy"   // the explicit HTTP proxy port
	scopeProxyRoutes Scope = "proxyRoutes" // routes of the explicit HTTP proxy
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
	IPv6      bool // the proxies have IPv6 addresses
}

func (f Facet) String() string {
	parts := []string{string(f.Scope)}
	for _, p := range []struct{ key, value string }{
		{"cluster", string(f.Cluster)},
		{"network", string(f.Network)},
		{"namespace", f.Namespace},
		{"domain", f.Domain},
		{"addresses", f.Addresses},
	} {
		if p.value != "" {
			parts = append(parts, p.key+"="+p.value)
		}
	}
	if f.Port != 0 {
		parts = append(parts, fmt.Sprintf("port=%d", f.Port))
	}
	if f.IPv6 {
		parts = append(parts, "ipv6")
	}
	return strings.Join(parts, " ")
}

// offers tells that the facet's resources stand for services.
func (f Facet) offers() bool { return f.Scope == scopePublic || f.Scope == scopePrivate }

// covers tells that the service belongs to a facet that stands for services. No
// service belongs to two such facets of one proxy.
func (f Facet) covers(s *federation.Service) bool {
	switch f.Scope {
	case scopePublic:
		return isPublic(s)
	case scopePrivate:
		return !isPublic(s) && s.VisibleFrom(f.Namespace)
	case scopeRoutes, scopeProxyRoutes:
		return s.VisibleFrom(f.Namespace)
	}
	return false
}

func isPublic(s *federation.Service) bool {
	return len(s.ExportTo) == 0 || slices.Contains(s.ExportTo, "*")
}

// Facets returns the facets of the node for resources of that type. The node's
// resources are the union of what Build makes for its facets; Names may give a
// name in two of them, but Build makes it in one. Routers and ingresses get clusters and endpoints only.
func Facets(t Type, n Node) []Facet {
	switch t {
	case ClusterType:
		return n.clusterFacets()
	case EndpointType:
		return n.endpointFacets()
	case ListenerType:
		return n.listenerFacets()
	case RouteType:
		return n.routeFacets()
	}
	return nil
}

func (n Node) clusterFacets() []Facet {
	facets := []Facet{{Scope: scopePublic}, {Scope: scopePrivate, Namespace: n.Namespace}}
	if n.Type == Sidecar {
		facets = append([]Facet{{Scope: scopeStatic, IPv6: n.hasIPv6()}}, facets...)
	}
	return facets
}

// endpointFacets name the cluster only where it decides the network.
func (n Node) endpointFacets() []Facet {
	public := Facet{Scope: scopePublic, Network: n.Network}
	if n.Network == "" {
		public.Cluster = n.Cluster
	}
	private := public
	private.Scope, private.Namespace = scopePrivate, n.Namespace
	return []Facet{public, private}
}

func (n Node) listenerFacets() []Facet {
	if n.Type != Sidecar {
		return nil
	}
	var facets []Facet
	if n.Capture {
		inbound := Facet{Scope: scopeInbound, Cluster: n.Cluster, Network: n.Network, Addresses: n.addressList(), IPv6: n.hasIPv6()}
		facets = append(facets, Facet{Scope: scopeCapture, IPv6: n.hasIPv6()}, inbound,
			Facet{Scope: scopePublic, Cluster: n.Cluster, IPv6: n.hasIPv6()},
			Facet{Scope: scopePrivate, Cluster: n.Cluster, Namespace: n.Namespace, IPv6: n.hasIPv6()})
	}
	if n.HTTPProxyPort != 0 {
		facets = append(facets, Facet{Scope: scopeHTTPProxy, Port: n.HTTPProxyPort})
	}
	return facets
}

func (n Node) routeFacets() []Facet {
	if n.Type != Sidecar {
		return nil
	}
	var facets []Facet
	routes := Facet{Scope: scopeRoutes, Cluster: n.Cluster, Namespace: n.Namespace, Domain: n.Domain}
	if n.Capture {
		facets = append(facets, routes)
	}
	if n.HTTPProxyPort != 0 {
		routes.Scope = scopeProxyRoutes
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
