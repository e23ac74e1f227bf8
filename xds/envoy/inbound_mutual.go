package envoy

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// takeMutual ends mutual TLS of the mesh in front of the workload. Everything
// else, plaintext and TLS of the workload's own, passes as without it: the mode is
// PERMISSIVE. A caller that lets the server speak first waits for detection.
func (b *builder) takeMutual(l *listenerv3.Listener) {
	l.ListenerFilters = append(l.ListenerFilters, resource.TLSInspectorFilter())
	l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(detection), true
	for _, port := range b.inboundHTTPPorts() {
		http := b.newInlineHTTP(fmt.Sprintf("inbound_%d", port), resource.InboundPassthroughCluster)
		http.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE_SET
		http.SetCurrentClientCertDetails = &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{Uri: true}
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: meshChain(uint32(port)),
			Filters:          []*listenerv3.Filter{resource.Filter(resource.HTTPFilter, http)},
			TransportSocket:  b.meshServer("h2", "http/1.1"),
		})
	}
	l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
		FilterChainMatch: meshChain(0),
		Filters:          []*listenerv3.Filter{resource.TCPProxy(resource.InboundPassthroughCluster)},
		TransportSocket:  b.meshServer(),
	})
}

// meshChain matches TLS connections of proxies of the mesh; port 0 is any port that
// no other chain names.
func meshChain(port uint32) *listenerv3.FilterChainMatch {
	match := &listenerv3.FilterChainMatch{TransportProtocol: "tls", ApplicationProtocols: transport.MeshProtocols()}
	if port != 0 {
		match.DestinationPort = wrapperspb.UInt32(port)
	}
	return match
}

// meshServer is the server's side of mutual TLS between proxies of the mesh: the
// caller is of a trust domain of the mesh.
func (b *builder) meshServer(protocols ...string) *corev3.TransportSocket {
	return transport.MeshListener(transport.OfTrustDomains(b.reader.TrustDomains()), protocols, b.facet.Agent)
}

// meshSocket is the same of a gateway's server, which may name its callers.
func (b *builder) meshSocket(s *gatewayServer) *corev3.TransportSocket {
	callers := transport.ExactNames(slices.Clone(s.spec.GetTls().GetSubjectAltNames()))
	if len(callers) == 0 {
		callers = transport.OfTrustDomains(b.reader.TrustDomains())
	}
	var protocols []string
	if s.routed(gateway.SpeaksTLS) {
		protocols = []string{"h2", "http/1.1"}
	}
	return transport.MeshListener(callers, protocols, b.facet.Agent)
}
