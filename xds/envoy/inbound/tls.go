package inbound

import (
	"fmt"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// overTLS reports whether the listener ends the TLS that a Sidecar describes. As with Istio that is
// where no PeerAuthentication takes the mesh's own.
func (s server) overTLS(number uint16) bool {
	mode := s.modes.Of(number).Mode
	meshTLS := mode == authentication.Strict || mode == authentication.Permissive && s.view.Facet.Identity
	return s.ports[number].ingress.GetTls() != nil && !meshTLS
}

// endsTLS reports whether a port does.
func (s server) endsTLS() bool { return slices.ContainsFunc(s.numbers, s.overTLS) }

// ownTLS are the chains of a port at which the listener ends TLS: plain text is refused, and
// everything where the TLS cannot be had.
func (s server) ownTLS(number uint16) []*listenerv3.FilterChain {
	refused := listener.ChainForPort(number, resource.TCPProxy(resource.BlackHoleCluster))
	p := s.ports[number]
	http := federation.ParseProtocol(p.ingress.GetPort().GetProtocol()) == federation.HTTPS
	socket, err := transport.Termination{HTTP: http}.TLS(p.ingress.GetTls())
	if err != nil {
		s.view.LeaveOut(resource.Reason{
			Code: resource.ReasonTLS, Cause: p.by.Key,
			Message: fmt.Sprintf("%s ingress of port %d%v; until then the port refuses every connection", p.by.Key.Title(), number, err),
		})
		return []*listenerv3.FilterChain{refused}
	}
	filter := s.bytesTo(number)
	if http {
		filter = s.requestsTo(number, p.ingress.GetTls().GetMode() == networking.ServerTLSSettings_MUTUAL)
	}
	ended := listener.ChainForPort(number, filter)
	ended.FilterChainMatch.TransportProtocol, ended.TransportSocket = tlsProtocol, socket
	return []*listenerv3.FilterChain{ended, refused}
}

// reportIdleTLS says where TLS of a Sidecar is not ended.
func (s server) reportIdleTLS() {
	for _, number := range s.numbers {
		if p := s.ports[number]; p.ingress.GetTls() != nil && !s.overTLS(number) {
			s.view.LeaveOut(resource.Reason{
				Code: resource.ReasonRuleIgnored, Cause: p.by.Key,
				Message: fmt.Sprintf("%s ingress of port %d: tls has no effect while the port takes mutual TLS of the mesh; write a PeerAuthentication with mode DISABLE for the port", p.by.Key.Title(), number),
			})
		}
	}
}
