package envoy

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

const (
	anyIPv4 = "0.0.0.0"
	anyIPv6 = "::"
)

// detection is how long the first bytes of a caller are waited for to tell
// whether it speaks HTTP.
const detection = time.Second

func (b *builder) listener(name string) proto.Message {
	var l *listenerv3.Listener
	switch {
	case b.facet.Scope == node.ScopeCapture && name == resource.VirtualOutbound:
		l = b.captureListener()
	case b.facet.Scope == node.ScopeInbound && name == resource.VirtualInbound:
		l = b.inboundListener()
	case b.facet.Scope == node.ScopePods:
		l = b.podsListener(name)
	case b.facet.Scope == node.ScopeNames && name == resource.NamesListener:
		l = b.namesListener()
	case b.facet.Scope == node.ScopeHTTPProxy && name == resource.HTTPProxyListener(b.facet.Port):
		l = b.proxyListener(name, b.facet.Port)
	case b.facet.Scope == node.ScopeGateway:
		l = b.gatewayListener(name)
	case b.facet.Offers():
		l = b.offeredListener(name)
	}
	if l == nil {
		return nil
	}
	return l
}

// offeredListener is that of services for a facet that stands for them.
func (b *builder) offeredListener(name string) *listenerv3.Listener {
	if b.facet.Scope == node.ScopeOwn || b.facet.Scope == node.ScopePrivate {
		return b.ownListener(name)
	}
	return b.serviceListener(name)
}

// captureListener gets every captured outbound connection and hands it to the
// listener of its destination; what has none goes on. Who
// dials the port itself would be sent around in a circle and gets nothing.
func (b *builder) captureListener() *listenerv3.Listener {
	l := newListener(resource.VirtualOutbound, anyIPv4, resource.OutboundPort)
	l.UseOriginalDst = wrapperspb.Bool(true)
	l.FilterChains = []*listenerv3.FilterChain{
		chainForPort(resource.OutboundPort, resource.TCPProxy(resource.BlackHoleCluster)),
		{Filters: []*listenerv3.Filter{b.passOn()}},
	}
	if b.facet.IPv6 {
		alsoIPv6(l, resource.OutboundPort)
	}
	return l
}

// passOn takes connections for which the mesh knows no service: they go where
// the caller wanted, or nowhere.
func (b *builder) passOn() *listenerv3.Filter {
	if b.facet.Outbound == federation.RegistryOnly {
		return resource.TCPProxy(resource.BlackHoleCluster)
	}
	return resource.TCPProxy(resource.PassthroughCluster)
}

// proxyListener is the explicit HTTP proxy of the workload.
func (b *builder) proxyListener(name string, port uint16) *listenerv3.Listener {
	l := newListener(name, "127.0.0.1", port)
	l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{b.routedHTTP(resource.HTTPProxyRoutes, resource.HTTPProxyRoutes)}}}
	return l
}

// serviceListener is found by destination only and bound to no port.
func (b *builder) serviceListener(name string) *listenerv3.Listener {
	vip, number, ok := resource.ParseListener(name)
	if !ok {
		return nil
	}
	l := newListener(name, vip.String(), number)
	l.BindToPort = wrapperspb.Bool(false)
	if !vip.IsUnspecified() {
		p := b.ownerAt(vip, number)
		if p.service == nil {
			return nil
		}
		return withConnections(l, b.connectionsTo(p, virtualservice.Single(vip)))
	}
	if b.facet.IPv6 {
		alsoIPv6(l, number)
	}
	return b.portListener(l, number)
}

// portListener gives HTTP what is HTTP, and TLS to the services that are told
// apart by the name of the server. Other connections of the port are not for its
// services and go on; a caller that lets the server speak first waits for
// detection. The chain for HTTP names its transport: the ALPN of a ClientHello
// counts as an application protocol, too.
func (b *builder) portListener(l *listenerv3.Listener, number uint16) *listenerv3.Listener {
	addNamed(l, b.servers(number))
	b.addRanges(l, number)
	if f := b.portFilter(number); f != nil {
		l.ListenerFilters = append(l.ListenerFilters, resource.HTTPInspectorFilter())
		l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(detection), true
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: "raw_buffer", ApplicationProtocols: []string{"http/1.0", "http/1.1", "h2c"}},
			Filters:          []*listenerv3.Filter{f},
		})
	}
	if len(l.FilterChains) == 0 {
		return nil
	}
	l.DefaultFilterChain = &listenerv3.FilterChain{Filters: []*listenerv3.Filter{b.passOn()}}
	return l
}

// portFilter routes the requests of a port on which any service speaks HTTP. TCP
// services of that port keep their VIPs' own listeners.
func (b *builder) portFilter(number uint16) *listenerv3.Filter {
	if !b.speaksHTTP(number) {
		return nil
	}
	return b.routedHTTP("outbound_"+strconv.Itoa(int(number)), strconv.Itoa(int(number)))
}

// speaksHTTP tells that any service speaks HTTP on the port.
func (b *builder) speaksHTTP(number uint16) bool {
	for group := range byHostname(b.reader.SpecsOnPort(number)) {
		owner, _ := b.firstOwner(group, number)
		if owner.service != nil && owner.port.Protocol.IsHTTP() {
			return true
		}
	}
	return false
}

// ownerAt is the service that owns the port of a VIP, where it is the facet's:
// one that was given the VIP before one whose automatic VIP it is (ADR 0059), one that
// everyone sees before others, one of the proxy's own cluster before
// those known by another cluster's VIP, then the first in the order of keys.
func (b *builder) ownerAt(vip netip.Addr, number uint16) servedPort {
	if b.facet.Scope != node.ScopePublic {
		b.reader.SpecsOnPort(number) // a service that everyone sees may come
	}
	claims := b.reader.SelectAtVIP(vip, func(s *federation.Service) bool {
		p, ok := tcpPort(s, number)
		return ok && !p.Protocol.IsHTTP() && b.sees(s) && slices.Contains(listenerVIPs(s, b.facet), vip)
	})
	claims = slices.DeleteFunc(claims, func(s *federation.Service) bool { return !b.owns(s, number) || b.isAlias(s) })
	slices.SortStableFunc(claims, func(s, t *federation.Service) int {
		return cmp.Or(resource.CompareTrueFirst(!s.IsAutomatic(vip), !t.IsAutomatic(vip)), resource.CompareTrueFirst(node.IsPublic(s), node.IsPublic(t)),
			resource.CompareTrueFirst(hasShard(s, b.facet.Cluster), hasShard(t, b.facet.Cluster)))
	})
	if len(claims) == 0 {
		return b.headlessAt(vip, number)
	}
	if !b.facet.Covers(claims[0]) {
		return servedPort{}
	}
	for _, s := range claims[1:] {
		b.leaveOut(resource.Reason{Code: resource.ReasonVIPTaken, Service: s.Key, Message: "VIP " + netip.AddrPortFrom(vip, number).String() + " of " + s.Key.String() +
			" is that of " + claims[0].Key.String() + ", which comes first; callers in this cluster need another address for the former"})
	}
	port, _ := tcpPort(claims[0], number)
	return servedPort{claims[0], port}
}

func newListener(name, address string, port uint16) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, Address: resource.SocketAddress(address, port), TrafficDirection: corev3.TrafficDirection_OUTBOUND}
}

func alsoIPv6(l *listenerv3.Listener, port uint16) {
	l.AdditionalAddresses = []*listenerv3.AdditionalAddress{{Address: resource.SocketAddress(anyIPv6, port)}}
}

func chainForPort(port uint16, filters ...*listenerv3.Filter) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(port))},
		Filters:          filters,
	}
}
