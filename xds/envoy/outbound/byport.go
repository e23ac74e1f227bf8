package outbound

import (
	"fmt"
	"net/netip"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// addRest adds the chain for what no other chain of the port takes: connections go to the service that has
// them by the number of the port alone, or else on. Without such a service, a port of which nothing is
// known needs no listener.
func addRest(v *facet.View, l *listenerv3.Listener, number uint16) *listenerv3.Listener {
	rest := &listenerv3.FilterChain{Filters: byPort(v, number)}
	switch {
	case len(l.FilterChains) == 0 && len(rest.Filters) == 0:
		return nil
	case len(l.FilterChains) == 0:
		l.FilterChains = append(l.FilterChains, rest)
		return l
	case len(rest.Filters) == 0:
		rest.Filters = []*listenerv3.Filter{listener.PassOn(v)}
	}
	l.DefaultFilterChain = rest
	return l
}

// byPort sends connections to the port, whatever their address, to the oldest of the services that nothing but
// the port tells apart; none: there is no such service.
func byPort(v *facet.View, number uint16) []*listenerv3.Filter {
	claims := v.Reader.SelectOnPort(number, func(s *federation.Service) bool {
		p, ok := service.TCPPort(s, number)
		return ok && v.Sees(s) && v.Exposes(s, number) && service.ByPort(service.ServedPort{Service: s, Port: p}, v.Facet)
	})
	claims = slices.DeleteFunc(claims, func(s *federation.Service) bool { return !service.Owns(v, s, number) || service.IsAlias(v, s) })
	if len(claims) == 0 {
		return nil
	}
	slices.SortStableFunc(claims, func(s, t *federation.Service) int { return s.Created.Compare(t.Created) })
	first := claims[0]
	for _, s := range claims[1:] {
		v.LeaveOut(resource.Reason{Code: resource.ReasonVIPTaken, Service: s.Key, Message: fmt.Sprintf(
			"connections to port %d are those of %s, which has no addresses either and is older than %s; give one of them addresses",
			number, first.Key, s.Key)})
	}
	port, _ := service.TCPPort(first, number)
	return route.ConnectionsTo(v, service.ServedPort{Service: first, Port: port}, netip.Prefix{}).Rest
}
