// Package outbound makes the listeners of a sidecar for what its workload sends: the
// entry of captured connections, those of services, and the explicit HTTP proxy.
package outbound

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// Listener is that of services for a facet that has them.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	if v.Facet.Has(node.Prior) {
		return ownListener(v, name)
	}
	return serviceListener(v, name)
}

// serviceListener is found by destination only and bound to no port.
func serviceListener(v *facet.View, name string) *listenerv3.Listener {
	vip, number, ok := resource.ParseListener(name)
	if !ok {
		return nil
	}
	l := listener.New(name, vip.String(), number)
	l.BindToPort = wrapperspb.Bool(false)
	if !vip.IsUnspecified() {
		p := ownerAt(v, vip, number)
		if p.Service == nil {
			return nil
		}
		c := route.ConnectionsTo(v, p, virtualservice.Single(vip))
		return withConnections(v, withDetected(v, l, p), c)
	}
	if v.Facet.IPv6 {
		listener.AlsoIPv6(l, number)
	}
	return portListener(v, l, number)
}

// portListener routes HTTP as HTTP, and TLS to the services that are told
// apart by the name of the server. Other connections of the port are for the service that has no
// address, or not for its services and go on; a caller that lets the server speak first waits for
// detection. The chain for HTTP names its transport: the ALPN of a ClientHello
// counts as an application protocol, too.
func portListener(v *facet.View, l *listenerv3.Listener, number uint16) *listenerv3.Listener {
	addNamed(v, l, servers(v, number))
	addRanges(v, l, number)
	if f := portFilter(v, number); f != nil {
		listener.Detect(v, l, resource.HTTPInspectorFilter())
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: plainProtocol, ApplicationProtocols: resource.HTTPProtocols()},
			Filters:          []*listenerv3.Filter{f},
		})
	}
	return addRest(v, l, number)
}

// portFilter routes the requests of a port on which any service speaks HTTP. TCP
// services of that port keep their VIPs' own listeners.
func portFilter(v *facet.View, number uint16) *listenerv3.Filter {
	if !service.SpeaksHTTP(v, number) {
		return nil
	}
	routes := strconv.Itoa(int(number))
	return listener.RoutedHTTP(v, "outbound_"+routes, routes, number, hasWeb(v, number))
}

// hasWeb reports whether any service on the port speaks gRPC-Web. The services of a port have one filter for all requests, and it
// leaves other requests as they are.
func hasWeb(v *facet.View, number uint16) bool {
	return len(v.Reader.SelectOnPort(number, func(s *federation.Service) bool {
		p, ok := service.TCPPort(s, number)
		return ok && p.Protocol == federation.GRPCWeb && v.Sees(s) && v.Exposes(s, number)
	})) > 0
}

// ownerAt is the service that owns the port of a VIP, where it is the facet's:
// one that was given the VIP before one whose automatic VIP it is (ADR 0059), one that
// everyone sees before others, one of the proxy's own cluster before
// those known by another cluster's VIP, then the first in the order of keys.
func ownerAt(v *facet.View, vip netip.Addr, number uint16) service.ServedPort {
	if !v.Facet.Has(node.Public) {
		v.Reader.SpecsOnPort(number) // a service that everyone sees may come
	}
	claims := v.Reader.SelectAtVIP(vip, func(s *federation.Service) bool {
		p, ok := service.TCPPort(s, number)
		return ok && !p.Protocol.IsHTTP() && v.Sees(s) && v.Exposes(s, number) && slices.Contains(service.ListenerVIPs(s, v.Facet), vip)
	})
	claims = slices.DeleteFunc(claims, func(s *federation.Service) bool { return !service.Owns(v, s, number) || service.IsAlias(v, s) })
	slices.SortStableFunc(claims, func(s, t *federation.Service) int {
		return cmp.Or(resource.CompareTrueFirst(!s.IsAutomatic(vip), !t.IsAutomatic(vip)),
			resource.CompareTrueFirst(node.IsPublic(s), node.IsPublic(t)),
			resource.CompareTrueFirst(service.HasShard(s, v.Facet.Cluster), service.HasShard(t, v.Facet.Cluster)))
	})
	if len(claims) == 0 {
		return pods.At(v, vip, number)
	}
	if !v.Facet.Covers(claims[0]) {
		return service.ServedPort{}
	}
	for _, s := range claims[1:] {
		v.LeaveOut(resource.Reason{Code: resource.ReasonVIPTaken, Service: s.Key, Message: "VIP " + netip.AddrPortFrom(vip,
			number).String() + " of " + s.Key.String() +
			" is that of " + claims[0].Key.String() + ", which comes first; callers in this cluster need another address for the former"})
	}
	port, _ := service.TCPPort(claims[0], number)
	return service.ServedPort{Service: claims[0], Port: port}
}
