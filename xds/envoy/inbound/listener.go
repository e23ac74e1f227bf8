// Package inbound makes the listener of a sidecar for what its workload receives.
package inbound

import (
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// ListenerNames are the names of the facet's listeners.
func ListenerNames(f node.Facet, r *federation.Reader) []string {
	var names []string
	if !f.Uncaptured {
		names = append(names, resource.VirtualInbound)
	}
	ports := portsOf(f, r)
	for _, number := range slices.Sorted(maps.Keys(ports)) {
		if ports[number].bound {
			names = append(names, resource.InboundListener(number))
		}
	}
	return names
}

// ClusterNames are the names of the clusters of the workload's ports, where these have ones of their own.
func ClusterNames(f node.Facet, r *federation.Reader) []string {
	var names []string
	ports := portsOf(f, r)
	for _, number := range slices.Sorted(maps.Keys(ports)) {
		if cluster := ports[number].cluster(number); cluster != resource.InboundPassthroughCluster {
			names = append(names, cluster)
		}
	}
	return names
}

// portsOf are the ports with resources of their own: those of a Sidecar, or all where requests are counted.
func portsOf(f node.Facet, r *federation.Reader) map[uint16]port {
	if f.Extras().Sidecar == "" && !f.Stats {
		return nil
	}
	return workloadOf(facet.Open(f, r)).ports
}

// Listener gets inbound connections: all that are captured, or those to a port at which a
// Sidecar has the proxy listen. On ports where the
// workload speaks HTTP, or callers turn out to do so, it deals with requests; everything else, ports
// of the platform and unknown ports included, passes as it is. PeerAuthentications say which
// connections must be mutual TLS; policies decide about all of them.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	number, isPort := resource.ParseInbound(name)
	if !isPort && (name != resource.VirtualInbound || v.Facet.Uncaptured) {
		return nil
	}
	s := newServer(v)
	if isPort {
		return s.boundTo(number, name)
	}
	return s.captured()
}

// captured is the listener to which connections are redirected.
func (s server) captured() *listenerv3.Listener {
	s.view.Reasons = append(s.view.Reasons, s.vain...)
	l := listener.New(resource.VirtualInbound, listener.AnyIPv4, resource.InboundPort)
	l.ListenerFilters = []*listenerv3.ListenerFilter{resource.OriginalDestinationFilter()}
	if s.view.Facet.Transparent {
		// The kernel gives TPROXY's connections to transparent sockets only. The workload sees the caller's address,
		// which wins over 127.0.0.6, and by the mark the capture rules know the proxy's own connections.
		l.Transparent = wrapperspb.Bool(true)
		l.ListenerFilters = append(l.ListenerFilters, resource.OriginalSourceFilter())
	}
	l.FilterChains = []*listenerv3.FilterChain{listener.ChainForPort(resource.InboundPort, resource.TCPProxy(resource.BlackHoleCluster))}
	mutual := s.appendMutual(s.mutual(), s.modes.All, end{offers: transport.MeshProtocols()})
	s.complete(l, mutual)
	l.DefaultFilterChain = s.others()
	if s.view.Facet.IPv6 {
		listener.AlsoIPv6(l, resource.InboundPort)
	}
	return l
}

// boundTo is the listener at a port of the workload; nil: a Sidecar demands none.
func (s server) boundTo(number uint16, name string) *listenerv3.Listener {
	p, known := s.ports[number]
	if !known || !p.bound {
		return nil
	}
	if s.view.Facet.Uncaptured {
		s.view.Reasons = append(s.view.Reasons, s.vain...)
	}
	at := p.binds(s.view.Facet)
	l := listener.New(name, at[0].String(), number)
	for _, more := range at[1:] {
		l.AdditionalAddresses = append(l.AdditionalAddresses,
			&listenerv3.AdditionalAddress{Address: resource.SocketAddress(more.String(), number)})
	}
	s.numbers = []uint16{number}
	s.complete(l, s.mutual())
	if len(l.GetFilterChains()) == 0 {
		return nil
	}
	return l
}

// complete adds the chains, and what looks at connections before one is chosen.
func (s server) complete(l *listenerv3.Listener, mutual []*listenerv3.FilterChain) {
	s.reportClosed()
	s.reportIdleTLS()
	l.TrafficDirection = corev3.TrafficDirection_INBOUND
	l.FilterChains = append(append(l.FilterChains, s.plain()...), mutual...)
	if len(mutual) > 0 || s.endsTLS() || s.policies.AskServerName() {
		listener.Detect(s.view, l, resource.TLSInspectorFilter())
	}
	if ports := s.inspected(); len(ports) > 0 {
		listener.Detect(s.view, l, inspectOn(ports))
	}
}
