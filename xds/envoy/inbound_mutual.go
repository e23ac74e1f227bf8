package envoy

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// meshProtocols are those that Istio's proxies and these offer between them.
func meshProtocols() []string {
	return []string{meshProtocol, "istio-peer-exchange", "istio-http/1.0", "istio-http/1.1", "istio-h2"}
}

// takeMutual ends mutual TLS of the mesh in front of the workload. Everything
// else, plaintext and TLS of the workload's own, passes as without it: the mode is
// PERMISSIVE. A caller that lets the server speak first waits for detection.
func (b *builder) takeMutual(l *listenerv3.Listener) {
	l.ListenerFilters = append(l.ListenerFilters, tlsInspectorFilter())
	l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(detection), true
	for _, port := range b.inboundHTTPPorts() {
		http := b.newInlineHTTP(fmt.Sprintf("inbound_%d", port), resource.InboundPassthroughCluster)
		http.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE_SET
		http.SetCurrentClientCertDetails = &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{Uri: true}
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: meshChain(uint32(port)),
			Filters:          []*listenerv3.Filter{filter(httpFilter, http)},
			TransportSocket:  b.meshServer("h2", "http/1.1"),
		})
	}
	l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
		FilterChainMatch: meshChain(0),
		Filters:          []*listenerv3.Filter{tcpProxy(resource.InboundPassthroughCluster)},
		TransportSocket:  b.meshServer(),
	})
}

// meshChain matches TLS connections of proxies of the mesh; port 0 is any port that
// no other chain names.
func meshChain(port uint32) *listenerv3.FilterChainMatch {
	match := &listenerv3.FilterChainMatch{TransportProtocol: "tls", ApplicationProtocols: meshProtocols()}
	if port != 0 {
		match.DestinationPort = wrapperspb.UInt32(port)
	}
	return match
}

// meshServer is the server's side of mutual TLS between proxies of the mesh: the
// caller is of a trust domain of the mesh.
func (b *builder) meshServer(protocols ...string) *corev3.TransportSocket {
	return meshListener(ofTrustDomains(b.reader.TrustDomains()), protocols, b.facet.Agent)
}

// meshSocket is the same of a gateway's server, which may name its callers.
func (b *builder) meshSocket(s *gatewayServer) *corev3.TransportSocket {
	callers := exactNames(slices.Clone(s.spec.GetTls().GetSubjectAltNames()))
	if len(callers) == 0 {
		callers = ofTrustDomains(b.reader.TrustDomains())
	}
	var protocols []string
	if s.routed(speaksTLS) {
		protocols = []string{"h2", "http/1.1"}
	}
	return meshListener(callers, protocols, b.facet.Agent)
}

func meshListener(callers []*tlsv3.SubjectAltNameMatcher, protocols []string, agent bool) *corev3.TransportSocket {
	common := meshContext(callers, agent)
	common.AlpnProtocols = protocols
	return &corev3.TransportSocket{Name: tlsTransport, ConfigType: &corev3.TransportSocket_TypedConfig{
		TypedConfig: resource.Any(&tlsv3.DownstreamTlsContext{CommonTlsContext: common, RequireClientCertificate: wrapperspb.Bool(true)}),
	}}
}
