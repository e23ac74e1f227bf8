package inbound

import (
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/authorization"
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
	http     map[uint16]bool // the ports that speak HTTP
}

// ports are those that have chains of their own, sorted.
func (s server) ports() []uint16 {
	ports := maps.Clone(s.http)
	for _, port := range s.modes.Ports() {
		ports[port] = true
	}
	delete(ports, resource.InboundPort)
	return slices.Sorted(maps.Keys(ports))
}

// filter passes on what arrives at the port: requests that policies allow, or bytes.
func (s server) filter(port uint16, mutual bool) *listenerv3.Filter {
	if !s.http[port] {
		return resource.TCPProxy(resource.InboundPassthroughCluster)
	}
	m := listener.NewInlineHTTP(s.view, fmt.Sprintf("inbound_%d", port), resource.InboundPassthroughCluster)
	s.policies.Requests(m, s.tokens.Requests)
	if mutual {
		m.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE_SET
		m.SetCurrentClientCertDetails = &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{Uri: true}
	}
	return resource.Filter(resource.HTTPFilter, m)
}

// plain are the chains for connections that are not mutual TLS. A chain of a port hides the
// default chain only from connections that it matches, so a port that refuses plain text
// beside others that do not has a chain that refuses it.
func (s server) plain() []*listenerv3.FilterChain {
	var chains []*listenerv3.FilterChain
	for _, port := range s.ports() {
		mode := s.modes.Of(port)
		switch {
		case mode.Mode != authentication.Strict:
			chains = append(chains, s.madeBy(mode, listener.ChainForPort(port, s.filter(port, false))))
		case s.modes.All.Mode != authentication.Strict:
			chains = append(chains, s.madeBy(mode, listener.ChainForPort(port, resource.TCPProxy(resource.BlackHoleCluster))))
		}
		if mode.Mode == authentication.Permissive && s.modes.All.Mode == authentication.Strict && s.view.Facet.Identity {
			// TLS of the workload's own finds no default chain.
			chains = append(chains, s.madeBy(mode, &listenerv3.FilterChain{
				FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(port)), TransportProtocol: tlsProtocol},
				Filters:          []*listenerv3.Filter{resource.TCPProxy(resource.InboundPassthroughCluster)},
			}))
		}
	}
	return chains
}

// mutual are the chains that end mutual TLS of the mesh in front of the workload.
func (s server) mutual() []*listenerv3.FilterChain {
	if !s.view.Facet.Identity {
		return nil
	}
	var chains []*listenerv3.FilterChain
	for _, port := range s.ports() {
		var protocols []string
		if s.http[port] {
			protocols = []string{"h2", "http/1.1"}
		}
		chains = s.appendMutual(chains, s.modes.Of(port), port, protocols...)
	}
	return s.appendMutual(chains, s.modes.All, 0)
}

// appendMutual adds the chain of the port, if it takes mutual TLS; port 0 is any port that no
// other chain names. Where plain text is refused, all TLS is taken for that of the mesh.
func (s server) appendMutual(chains []*listenerv3.FilterChain, mode authentication.Decision, port uint16, protocols ...string) []*listenerv3.FilterChain {
	if mode.Mode == authentication.Disable {
		return chains
	}
	match := &listenerv3.FilterChainMatch{TransportProtocol: tlsProtocol}
	if mode.Mode != authentication.Strict {
		match.ApplicationProtocols = transport.MeshProtocols()
	}
	if port != 0 {
		match.DestinationPort = wrapperspb.UInt32(uint32(port))
	}
	return append(chains, s.madeBy(mode, &listenerv3.FilterChain{
		FilterChainMatch: match, Filters: []*listenerv3.Filter{s.filter(port, true)}, TransportSocket: s.socket(protocols),
	}))
}

// tlsProtocol is what the TLS inspector calls TLS.
const tlsProtocol = "tls"

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
	return s.madeBy(s.modes.All, &listenerv3.FilterChain{Filters: []*listenerv3.Filter{resource.TCPProxy(resource.InboundPassthroughCluster)}})
}

// madeBy has the policies decide about the chain's connections, and notes the objects of which
// the chain is made.
func (s server) madeBy(mode authentication.Decision, chain *listenerv3.FilterChain) *listenerv3.FilterChain {
	s.policies.Connections(chain)
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
