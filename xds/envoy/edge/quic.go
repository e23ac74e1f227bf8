package edge

import (
	"fmt"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// quicAt is the port at which the server offers HTTP/3; 0: it does not. Only servers that end TLS
// and do not verify clients do (ADR 141).
func (p *listenPort) quicAt(s *Server) uint16 {
	if p.protocol != gateway.ServesTLS || s.mode() != networking.ServerTLSSettings_SIMPLE || !transport.AllowsQUIC(s.spec.GetTls()) ||
		!s.routed(p.protocol) {
		return 0
	}
	at := p.facet.QUICAt(s.port())
	if p.datagrams[resource.DatagramListener(p.bind, at)] != nil || p.coversVerified(s) {
		return 0
	}
	return at
}

// coversVerified reports whether a name of the server covers that of another one which verifies
// clients: over UDP, where that one has no chain, its clients would pass here.
func (p *listenPort) coversVerified(s *Server) bool {
	for name, owner := range p.owners {
		if owner == s || gateway.PassesOn(owner.spec) || owner.mode() == networking.ServerTLSSettings_SIMPLE {
			continue
		}
		if slices.ContainsFunc(s.names, func(own string) bool { return resource.Covers(own, name) }) {
			return true
		}
	}
	return false
}

// quicListeners are the names of the listeners at which servers of the port offer HTTP/3.
func (p *listenPort) quicListeners() (names []string) {
	for _, s := range p.servers {
		if at := p.quicAt(s); at != 0 {
			names = append(names, resource.DatagramListener(p.bind, at))
		}
	}
	return names
}

// quicListener is the listener of that name for all servers that offer HTTP/3 there. Of servers
// with one name, the first has its connections.
func quicListener(v *facet.View, ports []*listenPort, name string) *listenerv3.Listener {
	var l *listenerv3.Listener
	taken := map[string]bool{}
	for _, p := range ports {
		for _, s := range p.servers {
			at := p.quicAt(s)
			if at == 0 || resource.DatagramListener(p.bind, at) != name {
				continue
			}
			if l == nil {
				l = newQUIC(v, name, p.bind, at)
			}
			if chain := quicChain(v, p, s, name, taken); chain != nil {
				l.FilterChains = append(l.FilterChains, chain)
			}
		}
	}
	return l
}

func newQUIC(v *facet.View, name string, bind netip.Addr, port uint16) *listenerv3.Listener {
	l := newDatagrams(v, name, bind, port)
	l.UdpListenerConfig.QuicOptions = &listenerv3.QuicProtocolOptions{}
	return l
}

// quicChain is for the connections of one server; nil where others have all of its names.
func quicChain(v *facet.View, p *listenPort, s *Server, listener string, taken map[string]bool) *listenerv3.FilterChain {
	var names []string
	for _, name := range s.names {
		if !taken[name] {
			names, taken[name] = append(names, name), true
		}
	}
	socket, err := s.ends()
	if err != nil || len(names) == 0 {
		return nil
	}
	if p.policies == nil {
		p.decide(v)
	}
	m := gatewayRequests(v, p, s, listener)
	m.CodecType = hcmv3.HttpConnectionManager_HTTP3
	m.Http3ProtocolOptions = &corev3.Http3ProtocolOptions{
		QuicProtocolOptions: &corev3.QuicProtocolOptions{MaxConcurrentStreams: wrapperspb.UInt32(mostStreams)},
	}
	chain := &listenerv3.FilterChain{
		FilterChainMatch: forServers(names), TransportSocket: transport.OverQUIC(socket),
		Filters: []*listenerv3.Filter{resource.Filter(resource.HTTPFilter, m)},
	}
	chain.FilterChainMatch.TransportProtocol = "quic"
	p.made(v, s, chain)
	return chain
}

// reportQUIC says which servers do not offer HTTP/3 although datagrams reach the port.
func (p *listenPort) reportQUIC(v *facet.View) {
	for _, s := range p.servers {
		if p.protocol != gateway.ServesTLS || !s.https() || p.quicAt(s) != 0 || p.facet.QUICAt(s.port()) == 0 {
			continue
		}
		why := "it verifies clients; use the mode SIMPLE"
		taken := p.datagrams[resource.DatagramListener(p.bind, p.facet.QUICAt(s.port()))]
		switch {
		case taken != nil:
			why = "the UDP port is taken by " + taken.servers[0].title()
		case s.mode() == networking.ServerTLSSettings_SIMPLE && !transport.AllowsQUIC(s.spec.GetTls()):
			why = "HTTP/3 needs TLS 1.3"
		case s.mode() == networking.ServerTLSSettings_SIMPLE:
			why = "its hosts include one of a server that verifies clients"
		}
		if _, err := s.ends(); err == nil {
			v.LeaveOut(resource.Reason{
				Code: resource.ReasonRuleIgnored, Cause: s.object.Subject(),
				Message: fmt.Sprintf("%s offers no HTTP/3: %s", s.title(), why),
			})
		}
	}
}

// altSvc tells clients that HTTP/3 is offered at the port for a day, as Istio's gateways do.
func altSvc(port uint16) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: "alt-svc", Value: fmt.Sprintf(`h3=":%d"; ma=86400`, port)},
		AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD,
	}
}
