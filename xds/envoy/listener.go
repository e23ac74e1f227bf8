package envoy

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"isthmus.dev/isthmus/federation"
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
	case b.facet.Scope == scopeCapture && name == virtualOutbound:
		l = b.captureListener()
	case b.facet.Scope == scopeInbound && name == virtualInbound:
		l = b.inboundListener()
	case b.facet.Scope == scopeHTTPProxy && name == httpProxyListener(b.facet.Port):
		l = proxyListener(name, b.facet.Port)
	case b.facet.offers() && b.facet.Scope != scopeOwn:
		l = b.serviceListener(name)
	}
	if l == nil {
		return nil
	}
	return l
}

// captureListener gets every captured outbound connection and hands it to the
// listener of its destination; what has none goes on. Who
// dials the port itself would be sent around in a circle and gets nothing.
func (b *builder) captureListener() *listenerv3.Listener {
	l := newListener(virtualOutbound, anyIPv4, outboundPort)
	l.UseOriginalDst = wrapperspb.Bool(true)
	l.FilterChains = []*listenerv3.FilterChain{
		chainForPort(outboundPort, tcpProxy(blackHoleCluster)),
		{Filters: []*listenerv3.Filter{b.passOn()}},
	}
	if b.facet.IPv6 {
		alsoIPv6(l, outboundPort)
	}
	return l
}

// passOn takes connections for which the mesh knows no service: they go where
// the caller wanted, or nowhere.
func (b *builder) passOn() *listenerv3.Filter {
	if b.facet.Outbound == federation.RegistryOnly {
		return tcpProxy(blackHoleCluster)
	}
	return tcpProxy(passthroughCluster)
}

// proxyListener is the explicit HTTP proxy of the workload.
func proxyListener(name string, port uint16) *listenerv3.Listener {
	l := newListener(name, "127.0.0.1", port)
	l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{routedHTTP(httpProxyRoutes, httpProxyRoutes)}}}
	return l
}

// serviceListener is found by destination only and bound to no port.
func (b *builder) serviceListener(name string) *listenerv3.Listener {
	vip, number, ok := parseListener(name)
	if !ok {
		return nil
	}
	l := newListener(name, vip.String(), number)
	l.BindToPort = wrapperspb.Bool(false)
	if !vip.IsUnspecified() {
		return withFilter(l, b.vipFilter(vip, number))
	}
	if b.facet.IPv6 {
		alsoIPv6(l, number)
	}
	return b.httpOrPassthrough(l, b.portFilter(number))
}

func withFilter(l *listenerv3.Listener, f *listenerv3.Filter) *listenerv3.Listener {
	if f == nil {
		return nil
	}
	l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{f}}}
	return l
}

// httpOrPassthrough gives the filter what is HTTP. Other connections of the port
// are not for its services and go on; a caller that lets the server speak first
// waits for detection.
func (b *builder) httpOrPassthrough(l *listenerv3.Listener, f *listenerv3.Filter) *listenerv3.Listener {
	if withFilter(l, f) == nil {
		return nil
	}
	l.ListenerFilters = []*listenerv3.ListenerFilter{httpInspectorFilter()}
	l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(detection), true
	l.FilterChains[0].FilterChainMatch = &listenerv3.FilterChainMatch{ApplicationProtocols: []string{"http/1.0", "http/1.1", "h2c"}}
	l.DefaultFilterChain = &listenerv3.FilterChain{Filters: []*listenerv3.Filter{b.passOn()}}
	return l
}

// portFilter routes the requests of a port on which any service speaks HTTP.
// TCP services of that port keep their VIPs' own listeners. The listener is of the facet that everyone
// shares where a service of that facet is enough reason for it.
func (b *builder) portFilter(number uint16) *listenerv3.Filter {
	found := false
	for group := range byHostname(b.reader.SpecsOnPort(number)) {
		owner, _ := firstOwner(group, number, b.sees)
		if owner.service == nil || !owner.port.Protocol.IsHTTP() {
			continue
		}
		if isPublic(owner.service) && b.facet.Scope == scopePrivate {
			return nil
		}
		if found = found || b.facet.covers(owner.service); found && b.facet.Scope == scopePublic {
			break
		}
	}
	if !found {
		return nil
	}
	return routedHTTP("outbound_"+strconv.Itoa(int(number)), strconv.Itoa(int(number)))
}

// vipFilter sends the connections to a VIP to the service that owns it there:
// one that everyone sees before others, one of the proxy's own cluster before
// those known by another cluster's VIP, then the first in the order of keys.
func (b *builder) vipFilter(vip netip.Addr, number uint16) *listenerv3.Filter {
	if b.facet.Scope != scopePublic {
		b.reader.SpecsOnPort(number) // a service that everyone sees may come
	}
	claims := b.reader.SelectAtVIP(vip, func(s *federation.Service) bool {
		p, ok := tcpPort(s, number)
		return ok && !p.Protocol.IsHTTP() && b.sees(s) && slices.Contains(listenerVIPs(s, b.facet), vip)
	})
	claims = slices.DeleteFunc(claims, func(s *federation.Service) bool { return !b.owns(s, number) })
	slices.SortStableFunc(claims, func(s, t *federation.Service) int {
		return cmp.Or(compareTrueFirst(isPublic(s), isPublic(t)),
			compareTrueFirst(hasShard(s, b.facet.Cluster), hasShard(t, b.facet.Cluster)))
	})
	if len(claims) == 0 || !b.facet.covers(claims[0]) {
		return nil
	}
	for _, s := range claims[1:] {
		b.leaveOut(Reason{Code: ReasonVIPTaken, Message: "VIP " + netip.AddrPortFrom(vip, number).String() + " of " + s.Key.String() +
			" is that of " + claims[0].Key.String() + ", which comes first; callers in this cluster need another address for the former"})
	}
	return tcpProxy(clusterName(claims[0].Key.Hostname, number))
}

func newListener(name, address string, port uint16) *listenerv3.Listener {
	return &listenerv3.Listener{Name: name, Address: socketAddress(address, port), TrafficDirection: corev3.TrafficDirection_OUTBOUND}
}

func alsoIPv6(l *listenerv3.Listener, port uint16) {
	l.AdditionalAddresses = []*listenerv3.AdditionalAddress{{Address: socketAddress(anyIPv6, port)}}
}

func chainForPort(port uint16, filters ...*listenerv3.Filter) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(port))},
		Filters:          filters,
	}
}
