package transport

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	quicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

const quicTransport = "envoy.transport_sockets.quic"

// AllowsQUIC reports whether the settings allow TLS 1.3, without which there is no QUIC.
func AllowsQUIC(tls *networking.ServerTLSSettings) bool {
	most, limited := tlsVersions[tls.GetMaxProtocolVersion()]
	return !limited || most == tlsv3.TlsParameters_TLSv1_3
}

// OverQUIC is the server's side of TLS, with the same certificates, for HTTP/3; nil where the
// socket is not one of TLS.
func OverQUIC(socket *corev3.TransportSocket) *corev3.TransportSocket {
	context := &tlsv3.DownstreamTlsContext{}
	if socket.GetTypedConfig().UnmarshalTo(context) != nil {
		return nil
	}
	common := context.GetCommonTlsContext()
	common.AlpnProtocols = []string{"h3"}
	common.TlsParams = &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
	}
	return &corev3.TransportSocket{Name: quicTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&quicv3.QuicDownstreamTransport{DownstreamTlsContext: context}),
	}}
}
