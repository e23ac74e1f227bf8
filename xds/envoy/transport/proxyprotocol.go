package transport

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// SendProxyProtocol has the cluster begin every connection with a header of the PROXY
// protocol, before TLS.
func SendProxyProtocol(c *clusterv3.Cluster, p *networking.TrafficPolicy_ProxyProtocol) {
	config := &corev3.ProxyProtocolConfig{}
	if p.GetVersion() == networking.TrafficPolicy_ProxyProtocol_V2 {
		config.Version = corev3.ProxyProtocolConfig_V2
	}
	wrap := func(inner *corev3.TransportSocket) *corev3.TransportSocket {
		if inner == nil {
			inner = &corev3.TransportSocket{
				Name:       "envoy.transport_sockets.raw_buffer",
				ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: resource.Any(&rawbufferv3.RawBuffer{})},
			}
		}
		return &corev3.TransportSocket{
			Name: "envoy.transport_sockets.upstream_proxy_protocol",
			ConfigType: &corev3.TransportSocket_TypedConfig{
				TypedConfig: resource.Any(&proxyprotocolv3.ProxyProtocolUpstreamTransport{Config: config, TransportSocket: inner}),
			},
		}
	}
	c.TransportSocket = wrap(c.GetTransportSocket())
	for _, match := range c.GetTransportSocketMatches() {
		match.TransportSocket = wrap(match.GetTransportSocket())
	}
}
