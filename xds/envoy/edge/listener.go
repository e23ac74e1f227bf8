package edge

import (
	"net/netip"
	"slices"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/gateway"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// The names of the facet's resources depend on Gateways alone.

// ListenerNames are the names of the listeners.
func ListenerNames(f node.Facet, r *federation.Reader) []string {
	var names []string
	for _, p := range ports(facet.Open(f, r)) {
		names = append(append(names, p.listener()), p.quicListeners()...)
	}
	return sorted(names)
}

// RouteNames are the names of the routes.
func RouteNames(f node.Facet, r *federation.Reader) []string {
	var names []string
	for _, p := range ports(facet.Open(f, r)) {
		for _, s := range p.servers {
			if s.routed(p.protocol) {
				names = append(names, p.routesName(s))
			}
		}
	}
	return sorted(names)
}

// ClusterNames are the names of the clusters.
func ClusterNames(f node.Facet, r *federation.Reader) []string {
	names := AssignmentNames(f, r)
	if len(gateways(facet.Open(f, r))) > 0 {
		names = append(names, resource.BlackHoleCluster)
	}
	return sorted(names)
}

// AssignmentNames are the names of the endpoints: those of clusters for datagrams.
func AssignmentNames(f node.Facet, r *federation.Reader) []string {
	v := facet.Open(f, r)
	var names []string
	for _, p := range ports(v) {
		names = append(names, p.datagramClusters(v)...)
	}
	return sorted(names)
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// Cluster is where a gateway sends what has no destination, or datagrams.
func Cluster(v *facet.View, name string) proto.Message {
	if d, is := datagramsTo(v, name); is {
		return cluster.OfEndpoints(name, d)
	}
	if name != resource.BlackHoleCluster || len(gateways(v)) == 0 {
		return nil
	}
	return cluster.Empty(name)
}

// Listener is bound for real. Nil where nothing would take connections.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	ports := ports(v)
	i := slices.IndexFunc(ports, func(p *listenPort) bool { return p.listener() == name })
	if i < 0 {
		return quicListener(v, ports, name)
	}
	p := ports[i]
	v.Reasons = append(v.Reasons, p.reasons...)
	if p.protocol == gateway.ServesUDP {
		return datagramListener(v, p)
	}
	l := listener.New(name, p.bind.String(), p.number)
	if v.Facet.IPv6 && p.bind == netip.IPv4Unspecified() {
		listener.AlsoIPv6(l, p.number)
	}
	if v.Facet.Extras().Topology.ProxyProtocol { // before what reads the client's own bytes
		l.ListenerFilters = append(l.ListenerFilters, resource.ProxyProtocolFilter())
	}
	if p.protocol == gateway.ServesTLS {
		l.ListenerFilters = append(l.ListenerFilters, resource.TLSInspectorFilter())
	}
	p.decide(v)
	for _, s := range p.servers {
		chains := serverChains(v, p, s)
		for _, chain := range chains {
			p.policiesFor(s).Connections(chain)
			p.made(v, s, chain)
		}
		l.FilterChains = append(l.FilterChains, chains...)
	}
	p.reportQUIC(v)
	if len(l.FilterChains) == 0 {
		return nil
	}
	if p.protocol == gateway.ServesHTTP {
		l.FilterChains = l.FilterChains[:1] // one route configuration for all
		for _, s := range p.servers[1:] {
			v.CausedBy(s.object, l.FilterChains[0].Filters[0])
		}
	}
	return l
}

// decide finds what decides about the requests and connections of the port.
func (p *listenPort) decide(v *facet.View) {
	p.policies, p.tokens = authorization.For(v), authentication.TokensOf(v)
	p.unverified = sync.OnceValue(p.policies.Unverified)
}

// made notes what the chain of a server is made of.
func (p *listenPort) made(v *facet.View, s *Server, chain *listenerv3.FilterChain) {
	p.policies.Made(v, chain)
	p.tokens.Made(v, chain)
	v.CausedBy(s.object, chain.Filters[0])
}

// serverChains are the filter chains for the connections of one server.
func serverChains(v *facet.View, p *listenPort, s *Server) []*listenerv3.FilterChain {
	switch {
	case p.protocol == gateway.ServesHTTP:
		return []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{gatewayHTTP(v, p, s)}}}
	case p.protocol == gateway.ServesTCP:
		return withFilters(gatewayTCP(v, p, s)...)
	case s.mode() == networking.ServerTLSSettings_PASSTHROUGH:
		return passThrough(v, p, s)
	case gateway.BySNI(s.spec):
		return passBySNI(v, p, s)
	}
	socket, err := s.ends()
	if err != nil {
		v.LeaveOut(resource.Reason{Code: resource.ReasonTLS, Cause: s.object.Subject(), Message: s.title() + err.Error() +
			"; until then nothing listens for its hosts"})
		return nil
	}
	var chains []*listenerv3.FilterChain
	if s.routed(p.protocol) {
		chains = withFilters(gatewayHTTP(v, p, s))
	} else {
		chains = withFilters(gatewayTCP(v, p, s)...)
	}
	for _, chain := range chains {
		chain.FilterChainMatch = forServers(s.names)
		chain.TransportSocket = socket
		if s.mode() == networking.ServerTLSSettings_ISTIO_MUTUAL {
			chain.TransportSocket = meshSocket(v, s)
		}
	}
	return chains
}

func withFilters(filters ...*listenerv3.Filter) []*listenerv3.FilterChain {
	if len(filters) == 0 {
		return nil
	}
	return []*listenerv3.FilterChain{{Filters: filters}}
}

// forServers matches TLS connections for any of the names.
func forServers(names []string) *listenerv3.FilterChainMatch {
	match := &listenerv3.FilterChainMatch{TransportProtocol: "tls"}
	if !slices.Contains(names, "*") {
		match.ServerNames = names
	}
	return match
}

// gatewayHTTP is at the edge of the mesh: what callers say of where they come
// from and of their certificates is not trusted, unless the proxy's settings say so.
func gatewayHTTP(v *facet.View, p *listenPort, s *Server) *listenerv3.Filter {
	m := gatewayRequests(v, p, s, p.listener())
	m.Http2ProtocolOptions = &corev3.Http2ProtocolOptions{MaxConcurrentStreams: wrapperspb.UInt32(mostStreams)}
	return resource.Filter(resource.HTTPFilter, m)
}

// anyPort: VirtualServices send what comes to a gateway to services on any port.
const anyPort = 0

// mostStreams are those that a client may have in a connection.
const mostStreams = 100

// gatewayRequests is the same before it is a filter.
func gatewayRequests(v *facet.View, p *listenPort, s *Server, statPrefix string) *hcmv3.HttpConnectionManager {
	m := listener.NewRoutedHTTP(v, statPrefix, p.routesName(s), anyPort, p.translatesWeb())
	p.policiesFor(s).Requests(m, p.tokens.Requests)
	m.UseRemoteAddress = wrapperspb.Bool(true)
	topology := v.Facet.Extras().Topology
	m.XffNumTrustedHops = topology.TrustedProxies
	m.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE_SET
	if how, said := hcmv3.HttpConnectionManager_ForwardClientCertDetails_value[topology.ClientCertificate]; said {
		m.ForwardClientCertDetails = hcmv3.HttpConnectionManager_ForwardClientCertDetails(how)
	}
	switch m.GetForwardClientCertDetails() {
	case hcmv3.HttpConnectionManager_SANITIZE_SET, hcmv3.HttpConnectionManager_APPEND_FORWARD:
		m.SetCurrentClientCertDetails = s.clientDetails()
	}
	return m
}
