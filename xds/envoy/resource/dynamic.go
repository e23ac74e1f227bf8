package resource

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dynamicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/dynamic_forward_proxy/v3"
	dynamichttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/dynamic_forward_proxy/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	dynamicsniv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
)

// The names of what resolves the names that callers ask for.
const (
	DynamicCluster    = "envoy.clusters.dynamic_forward_proxy"
	DynamicHTTPFilter = "envoy.filters.http.dynamic_forward_proxy"
	DynamicSNIFilter  = "envoy.filters.network.sni_dynamic_forward_proxy"
)

// The bounds of what a proxy keeps of names.
const (
	mostDynamicNames   = 1024            // names at the same time; requests for others fail until one expires
	mostDynamicLookups = 256             // lookups that are under way
	dynamicNameUnused  = 5 * time.Minute // after which a name is forgotten
	dynamicLookup      = 5 * time.Second // after which a lookup has failed
	dynamicRefresh     = time.Minute     // where the answer says nothing of it
	dynamicLeast       = 5 * time.Second // between two lookups, whatever the answer says
)

// DynamicNames is the cache of a proxy for the names that callers ask for, with the addresses that the proxy can reach,
// without those that the policy refuses. The filters and the clusters of a proxy share it, and must say the same of
// it: Envoy refuses two caches of one name that differ. So its name depends on what it is, which
// the policy, addresses of the proxy or another version of the hub may change.
func DynamicNames(policy federation.AddressPolicy, lookup Lookup) *dynamicv3.DnsCacheConfig {
	cache := &dynamicv3.DnsCacheConfig{
		Name: "dynamic_dns", DnsLookupFamily: lookup.Family(),
		DnsRefreshRate: durationpb.New(dynamicRefresh), DnsMinRefreshRate: durationpb.New(dynamicLeast),
		DnsQueryTimeout: durationpb.New(dynamicLookup),
		HostTtl:         durationpb.New(dynamicNameUnused), MaxHosts: wrapperspb.UInt32(mostDynamicNames),
		DnsFailureRefreshRate: &clusterv3.Cluster_RefreshRate{
			BaseInterval: durationpb.New(time.Second),
			MaxInterval:  durationpb.New(dynamicLeast * 2),
		},
		DnsCacheCircuitBreaker: &dynamicv3.DnsCacheCircuitBreakers{MaxPendingRequests: wrapperspb.UInt32(mostDynamicLookups)},
		ResolvedAddressFilter:  &matcherv3.AddressMatcher{Ranges: refusedRanges(policy)},
	}
	digest := sha256.Sum256(Any(cache).GetValue())
	cache.Name += "_" + hex.EncodeToString(digest[:4])
	return cache
}

// refusedRanges are the addresses to which no name may lead.
func refusedRanges(policy federation.AddressPolicy) []*xdscorev3.CidrRange {
	var ranges []*xdscorev3.CidrRange
	for _, r := range policy.RefusedRanges() {
		ranges = append(ranges, &xdscorev3.CidrRange{AddressPrefix: r.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(r.Bits()))})
	}
	return ranges
}

// DynamicHTTP resolves the hosts of requests to clusters that need it, and leaves others alone.
func DynamicHTTP(names *dynamicv3.DnsCacheConfig) *hcmv3.HttpFilter {
	return InHTTP(DynamicHTTPFilter,
		&dynamichttpv3.FilterConfig{ImplementationSpecifier: &dynamichttpv3.FilterConfig_DnsCacheConfig{DnsCacheConfig: names}})
}

// DynamicSNI resolves the names of servers that TLS connections ask for.
func DynamicSNI(names *dynamicv3.DnsCacheConfig, port uint16) *listenerv3.Filter {
	return Filter(DynamicSNIFilter, &dynamicsniv3.FilterConfig{
		DnsCacheConfig: names, PortSpecifier: &dynamicsniv3.FilterConfig_PortValue{PortValue: uint32(port)},
	})
}
