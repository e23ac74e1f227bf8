package cluster

import (
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
)

// Inbound leads to the workload beside the proxy, within the limits of the policy: to the address,
// or to where the caller wanted if that is nil. Requests keep the caller's version of HTTP.
func Inbound(name string, to *corev3.Address, policy *networking.TrafficPolicy, ipv6 bool) *clusterv3.Cluster {
	c := originalDestination(name)
	if to != nil {
		c.ClusterDiscoveryType, c.LbPolicy = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, clusterv3.Cluster_ROUND_ROBIN
		c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: to}}}},
		}}}
	}
	if redirected(to) {
		c.UpstreamBindConfig = fromInbound(ipv6)
	}
	destinationrule.SetLimits(c, policy)
	setProtocols(c, destinationrule.HTTPOptions(federation.HTTP, true, policy))
	return c
}

// redirected reports whether connections of the proxy to the address would be captured again.
func redirected(to *corev3.Address) bool {
	at, err := netip.ParseAddr(to.GetSocketAddress().GetAddress())
	return to == nil || err == nil && !at.IsLoopback()
}
