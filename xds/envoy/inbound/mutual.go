package inbound

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// takeMutual ends mutual TLS of the mesh in front of the workload. Everything
// else, plaintext and TLS of the workload's own, passes as without it: the mode is
// PERMISSIVE.
func takeMutual(v *facet.View, policies *authorization.Policies, l *listenerv3.Listener) {
	detectTLS(l)
	for _, port := range inboundHTTPPorts(v) {
		http := inboundHTTP(v, policies, port)
		http.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE_SET
		http.SetCurrentClientCertDetails = &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{Uri: true}
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: meshChain(uint32(port)),
			Filters:          []*listenerv3.Filter{resource.Filter(resource.HTTPFilter, http)},
			TransportSocket:  meshServer(v, "h2", "http/1.1"),
		})
	}
	l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
		FilterChainMatch: meshChain(0),
		Filters:          []*listenerv3.Filter{resource.TCPProxy(resource.InboundPassthroughCluster)},
		TransportSocket:  meshServer(v),
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
func meshServer(v *facet.View, protocols ...string) *corev3.TransportSocket {
	return transport.MeshListener(transport.OfTrustDomains(v.Reader.TrustDomains()), protocols, v.Facet.Agent)
}
