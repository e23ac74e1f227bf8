// Package listener has what the listeners of all scopes are made of: addresses, filter
// chains and the manager of HTTP connections.
package listener

import (
	"cmp"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// New is an outbound listener at the address.
func New(name, address string, port uint16) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, Address: resource.SocketAddress(address, port), TrafficDirection: corev3.TrafficDirection_OUTBOUND}
}

// AlsoIPv6 has the listener listen at every IPv6 address too.
func AlsoIPv6(l *listenerv3.Listener, port uint16) {
	l.AdditionalAddresses = []*listenerv3.AdditionalAddress{{Address: resource.SocketAddress(anyIPv6, port)}}
}

// OfDatagrams has the listener take datagrams at its addresses.
func OfDatagrams(l *listenerv3.Listener) {
	l.UdpListenerConfig = &listenerv3.UdpListenerConfig{DownstreamSocketConfig: &corev3.UdpSocketConfig{}}
	l.GetAddress().GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	for _, more := range l.GetAdditionalAddresses() {
		more.GetAddress().GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	}
}

// ChainForPort is for connections to the port.
func ChainForPort(port uint16, filters ...*listenerv3.Filter) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(port))},
		Filters:          filters,
	}
}

// Addresses of listeners that take connections to any address.
const (
	AnyIPv4 = "0.0.0.0"
	anyIPv6 = "::"
)

// Detect has the listener look at the first bytes of connections by the filters, each kind of
// which it has once. A caller that lets the server speak first waits for the end of detection.
func Detect(v *facet.View, l *listenerv3.Listener, filters ...*listenerv3.ListenerFilter) {
	for _, f := range filters {
		same := func(have *listenerv3.ListenerFilter) bool { return have.GetName() == f.GetName() }
		if !slices.ContainsFunc(l.GetListenerFilters(), same) {
			l.ListenerFilters = append(l.ListenerFilters, f)
		}
	}
	l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(v.Reader.Mesh().DetectionTimeout()), true
}

// PassOn takes connections for which the mesh knows no service: they go where
// the caller wanted, to the egress proxy, or nowhere.
func PassOn(v *facet.View) *listenerv3.Filter {
	if v.Facet.Outbound == federation.RegistryOnly {
		return resource.TCPProxy(resource.BlackHoleCluster)
	}
	return resource.TCPProxy(cmp.Or(v.Facet.EgressProxy, resource.PassthroughCluster))
}
