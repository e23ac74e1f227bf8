package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Static builds the clusters that are the same everywhere.
func Static(name string, ipv6 bool) proto.Message {
	switch name {
	case resource.PassthroughCluster:
		return originalDestination(name)
	case resource.InboundPassthroughCluster:
		c := originalDestination(name)
		c.UpstreamBindConfig = fromInbound(ipv6)
		return c
	case resource.BlackHoleCluster:
		return Empty(name)
	}
	return nil
}

// fromInbound has connections come from the addresses that the capture rules let through.
func fromInbound(ipv6 bool) *corev3.BindConfig {
	b := &corev3.BindConfig{SourceAddress: resource.SocketAddress(inboundSource, 0).GetSocketAddress()}
	if ipv6 {
		b.ExtraSourceAddresses = []*corev3.ExtraSourceAddress{{Address: resource.SocketAddress(inboundSourceIPv6, 0).GetSocketAddress()}}
	}
	return b
}

// originalDestination sends to where the caller wanted, in the caller's version
// of HTTP.
func originalDestination(name string) *clusterv3.Cluster {
	c := New(name)
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
	c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
	setProtocols(c, &upstreamhttpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreamhttpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions:  &corev3.Http1ProtocolOptions{},
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
			},
		},
	})
	return c
}

// Empty answers every request with an error.
func Empty(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(ConnectTimeout),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
	}
}

// The addresses from which the proxy speaks to its own workload; the capture
// rules let its connections through. That of IPv6 must be one of the pod's.
const (
	inboundSource     = "127.0.0.6"
	inboundSourceIPv6 = "::6"
)
