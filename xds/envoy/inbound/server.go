package inbound

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// server is the workload's side of connections.
type server struct {
	view     *facet.View
	policies *authorization.Policies
	modes    authentication.Modes
	tokens   *authentication.Tokens
	workload
	numbers []uint16 // of the ports that the listener is about, sorted
}

func newServer(v *facet.View) server {
	s := server{
		view: v, policies: authorization.For(v), modes: authentication.ModesOf(v), tokens: authentication.TokensOf(v),
		workload: workloadOf(v),
	}
	for number, p := range s.ports {
		if !p.plainly() {
			s.numbers = append(s.numbers, number)
		}
	}
	s.numbers = append(s.numbers, s.modes.Ports()...)
	slices.Sort(s.numbers)
	s.numbers = slices.DeleteFunc(slices.Compact(s.numbers), func(number uint16) bool { return number == resource.InboundPort })
	return s
}

// inspected are the ports on which plain text may turn out to be HTTP, sorted.
func (s server) inspected() []uint16 {
	return slices.DeleteFunc(slices.Clone(s.numbers), func(number uint16) bool {
		return s.ports[number].protocol != detected || s.modes.Of(number).Mode == authentication.Strict
	})
}

// bytesTo passes on what arrives at the port as it is.
func (s server) bytesTo(number uint16) *listenerv3.Filter {
	proxy := resource.NewTCP(s.ports[number].cluster(number))
	destinationrule.ApplyTCP(proxy, s.ports[number].policy())
	return resource.Filter(resource.TCPProxyFilter, proxy)
}

// requestsTo passes on the requests that policies allow.
func (s server) requestsTo(number uint16, certified bool) *listenerv3.Filter {
	m := listener.NewInlineHTTP(s.view, fmt.Sprintf("inbound_%d", number), s.ports[number].cluster(number))
	s.policies.Requests(m, s.tokens.Requests)
	if certified { // as in Istio: what gateways say about their clients stays before what the caller's certificate says
		m.ForwardClientCertDetails = hcmv3.HttpConnectionManager_APPEND_FORWARD
		m.SetCurrentClientCertDetails = &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{
			Subject: wrapperspb.Bool(true),
			Uri:     true, Dns: true,
		}
	}
	return resource.Filter(resource.HTTPFilter, m)
}

// plain are the chains for connections that are not mutual TLS. A chain of a port hides the
// default chain only from connections that it matches, so a port that refuses plain text
// beside others that do not has a chain that refuses it.
func (s server) plain() []*listenerv3.FilterChain {
	var chains []*listenerv3.FilterChain
	for _, port := range s.numbers {
		mode := s.modes.Of(port)
		switch {
		case mode.Mode != authentication.Strict:
			for _, chain := range s.inClear(port) {
				chains = append(chains, s.madeBy(mode, chain))
			}
		case s.modes.All.Mode != authentication.Strict:
			chains = append(chains, s.madeBy(mode, listener.ChainForPort(port, resource.TCPProxy(resource.BlackHoleCluster))))
		}
		if mode.Mode == authentication.Permissive && s.modes.All.Mode == authentication.Strict && s.view.Facet.Identity {
			// TLS of the workload's own finds no default chain.
			chains = append(chains, s.madeBy(mode, &listenerv3.FilterChain{
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(port)), TransportProtocol: tlsProtocol},
				Filters:          []*listenerv3.Filter{s.bytesTo(port)},
			}))
		}
	}
	return chains
}

// inClear are the chains for plain text to the port. Those of a detected port name the transport:
// the ALPN of a ClientHello counts as an application protocol, too.
func (s server) inClear(port uint16) []*listenerv3.FilterChain {
	if s.overTLS(port) {
		return s.ownTLS(port)
	}
	switch s.ports[port].protocol {
	case requests:
		return []*listenerv3.FilterChain{listener.ChainForPort(port, s.requestsTo(port, false))}
	case detected:
		found, rest := listener.ChainForPort(port, s.requestsTo(port, false)), listener.ChainForPort(port, s.bytesTo(port))
		found.FilterChainMatch.TransportProtocol, rest.FilterChainMatch.TransportProtocol = plainProtocol, plainProtocol
		found.FilterChainMatch.ApplicationProtocols = resource.HTTPProtocols()
		return []*listenerv3.FilterChain{found, rest}
	}
	return []*listenerv3.FilterChain{listener.ChainForPort(port, s.bytesTo(port))}
}

// mutual are the chains that end mutual TLS of the mesh in front of the workload.
func (s server) mutual() []*listenerv3.FilterChain {
	var chains []*listenerv3.FilterChain
	for _, port := range s.numbers {
		mode := s.modes.Of(port)
		switch s.ports[port].protocol {
		case requests:
			chains = s.appendMutual(chains, mode, end{port: port, http: true, offers: transport.MeshProtocols()})
		case detected:
			chains = s.appendMutual(chains, mode, end{port: port, http: true, offers: transport.MeshRequests(), always: true})
			chains = s.appendMutual(chains, mode, end{port: port, offers: transport.MeshConnections()})
		default:
			chains = s.appendMutual(chains, mode, end{port: port, offers: transport.MeshProtocols()})
		}
	}
	return chains
}

// end is where mutual TLS ends: what of it a chain takes.
type end struct {
	port   uint16 // 0: any that no other chain names
	http   bool
	offers []string // of which a caller offers one
	always bool     // also where all TLS is that of the mesh
}

// appendMutual adds the chain, if the port takes mutual TLS. Where plain text is refused, all
// TLS is taken for that of the mesh.
func (s server) appendMutual(chains []*listenerv3.FilterChain, mode authentication.Decision, e end) []*listenerv3.FilterChain {
	if mode.Mode == authentication.Disable || !s.view.Facet.Identity {
		return chains
	}
	match := &listenerv3.FilterChainMatch{TransportProtocol: tlsProtocol}
	if mode.Mode != authentication.Strict || e.always {
		match.ApplicationProtocols = e.offers
	}
	if e.port != 0 {
		match.DestinationPort = wrapperspb.UInt32(uint32(e.port))
	}
	filter, protocols := s.bytesTo(e.port), []string(nil)
	if s.view.Facet.Stats {
		protocols = []string{resource.ExchangeProtocol, transport.MeshProtocol}
	}
	if e.http {
		filter, protocols = s.requestsTo(e.port, true), []string{"h2", "http/1.1"}
	}
	return append(chains, s.madeBy(mode, &listenerv3.FilterChain{
		FilterChainMatch: match, Filters: []*listenerv3.Filter{filter}, TransportSocket: s.socket(protocols),
	}))
}

// What the TLS inspector calls connections with and without TLS.
const (
	tlsProtocol   = "tls"
	plainProtocol = "raw_buffer"
)

// socket is the server's side of mutual TLS between proxies of the mesh: the caller is of a
// trust domain of the mesh.
func (s server) socket(protocols []string) *corev3.TransportSocket {
	return transport.MeshListener(transport.OfTrustDomains(s.view.Reader.TrustDomains()), protocols, s.view.Facet.Agent)
}

// others is the chain for connections that no chain matches; nil: they are closed.
func (s server) others() *listenerv3.FilterChain {
	if s.modes.All.Mode == authentication.Strict {
		return nil
	}
	return s.madeBy(s.modes.All, &listenerv3.FilterChain{Filters: []*listenerv3.Filter{s.bytesTo(0)}})
}

// madeBy has the policies decide about the chain's connections, and notes the objects of which
// the chain is made.
func (s server) madeBy(mode authentication.Decision, chain *listenerv3.FilterChain) *listenerv3.FilterChain {
	s.policies.Connections(chain)
	if o := s.ports[uint16(chain.GetFilterChainMatch().GetDestinationPort().GetValue())].by; o != nil {
		s.view.CausedBy(o, chain.GetFilters()[0])
	}
	s.policies.Made(s.view, chain)
	s.tokens.Made(s.view, chain)
	if mode.By != nil {
		s.view.CausedBy(mode.By, chain.GetFilters()[0])
	}
	return chain
}

// reportClosed says where mutual TLS is demanded of a proxy that has no identity for it.
func (s server) reportClosed() {
	if s.view.Facet.Identity {
		return
	}
	told := map[*federation.Object]bool{}
	for _, port := range append(s.modes.Ports(), 0) {
		mode := s.modes.All
		if port != 0 {
			mode = s.modes.Of(port)
		}
		if mode.Mode == authentication.Strict && !told[mode.By] {
			told[mode.By] = true
			s.view.LeaveOut(resource.Reason{
				Code: resource.ReasonNoIdentity, Cause: mode.By.Key,
				Message: fmt.Sprintf("%s has mode STRICT, and the proxy of %s has no identity of the mesh: it refuses every connection; give it IDENTITY_SOURCE in its metadata, as isthmus proxy bootstrap writes it", mode.By.Key.Title(), s.view.Facet.Addresses),
			})
		}
	}
}
