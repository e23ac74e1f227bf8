package node

import (
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// lookup follows from the addresses of the proxy. A gRPC client decides for itself.
func (n Node) lookup() resource.Lookup {
	switch {
	case n.GRPC || !n.hasIPv6():
	case !slices.ContainsFunc(n.Addresses, netip.Addr.Is4):
		return resource.LookupIPv6Only
	case n.DualStack:
		return resource.LookupAll
	}
	return resource.LookupIPv4First
}

// markLookup notes in facets whose proxies resolve names which addresses they use.
func markLookup(n Node, _ effectiveConfig, facets []Facet) {
	lookup := n.lookup()
	for i := range facets {
		if facets[i].Has(resolves) {
			facets[i].Lookup = lookup
		}
	}
}
