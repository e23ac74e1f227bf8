package resource

import clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

// Lookup says which addresses of names a proxy uses that resolves them: those that it can reach (ADR 238).
type Lookup uint8

// The zero value is that of most proxies, so that they share their facets.
const (
	LookupIPv4First Lookup = iota // IPv4 addresses, and IPv6 addresses of names that have no others
	LookupIPv6Only
	LookupAll // addresses of both families
)

// Family is the same for Envoy, wherever it resolves names.
func (l Lookup) Family() clusterv3.Cluster_DnsLookupFamily {
	switch l {
	case LookupIPv6Only:
		return clusterv3.Cluster_V6_ONLY
	case LookupAll:
		return clusterv3.Cluster_ALL
	}
	return clusterv3.Cluster_V4_PREFERRED
}
