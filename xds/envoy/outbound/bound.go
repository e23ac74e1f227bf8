package outbound

import (
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// BoundNames are the names of the listeners that a Sidecar puts at addresses of their own.
func BoundNames(f node.Facet, r *federation.Reader) []string {
	return boundNames(f, r, func(egress) bool { return true })
}

// BoundRouteNames are the names of their routes: those of the listeners.
func BoundRouteNames(f node.Facet, r *federation.Reader) []string {
	return boundNames(f, r, func(e egress) bool { return e.requests(facet.Open(f, r)) })
}

func boundNames(f node.Facet, r *federation.Reader, has func(egress) bool) []string {
	var names []string
	for _, e := range egressOf(facet.Open(f, r)) {
		if !slices.Contains(names, e.name()) && e.refusal(f) == "" && has(e) {
			names = append(names, e.name())
		}
	}
	return names
}

// Bound is a listener at an address of its own: it leads to the hosts of one egress listener of the Sidecar.
func Bound(v *facet.View, name string) *listenerv3.Listener {
	e, ok := egressNamed(v, name)
	if !ok {
		return nil
	}
	l := listener.New(name, "", e.number)
	l.Address, l.AdditionalAddresses = e.addresses(v.Facet)
	if !e.dialed {
		l.BindToPort = wrapperspb.Bool(false)
	}
	own := e.view(v)
	if e.requests(v) {
		filter := listener.RoutedHTTP(own, "outbound_"+name, name, e.number, e.web(own))
		l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{filter}}}
	} else {
		withConnections(own, l, e.connections(own))
	}
	for _, chain := range l.GetFilterChains() {
		v.CausedBy(e.by, chain.GetFilters()[0])
	}
	v.Reasons = append(v.Reasons, own.Reasons...)
	if v.Facet.Uncaptured && e.isFirst(v.Facet, v.Reader) {
		reportRefused(v)
	}
	return l
}

// BoundRoutes are the routes of such a listener.
func BoundRoutes(v *facet.View, name string) proto.Message {
	e, ok := egressNamed(v, name)
	if !ok || !e.requests(v) {
		return nil
	}
	number := e.number
	if e.anyPort() {
		number = 0
	}
	own := e.view(v)
	routes := route.Apart(own, name, number, e.dialed)
	v.Reasons = append(v.Reasons, own.Reasons...)
	return routes
}

// view is what the facet's proxies see of the hosts.
func (e egress) view(v *facet.View) *facet.View {
	own := *v
	own.Facet, own.Reasons = v.Facet.Narrowed(e.spec), nil
	return &own
}

// reportRefused notes the listeners that cannot be.
func reportRefused(v *facet.View) {
	for _, e := range egressOf(v) {
		if why := e.refusal(v.Facet); why != "" {
			v.LeaveOut(e.ignored("is excluded: " + why))
		}
	}
}

// isFirst reports whether the listener is the first one that the proxies have.
func (e egress) isFirst(f node.Facet, r *federation.Reader) bool {
	names := BoundNames(f, r)
	return len(names) > 0 && names[0] == e.name()
}

// connections are those to the exposed services of the port: TLS by the name of the server, others to the first
// one.
func (e egress) connections(v *facet.View) route.Connections {
	named := serverNames{view: v, taken: map[string]bool{}}
	var c route.Connections
	var first *federation.Service
	for p := range e.served(v) {
		of := route.ConnectionsTo(v, p, netip.Prefix{})
		switch {
		case service.AsksByName(p.Port.Protocol):
			named.add(p, of)
		case first == nil:
			first, c.Rest = p.Service, of.Rest
		default:
			why := "does not lead to " + p.Service.Key.String() + ": connections are those of " + first.Key.String() +
				", which comes first; write a listener for each"
			v.LeaveOut(e.ignored(why))
		}
	}
	c.Named = named.all
	if len(c.Named)+len(c.Rest) == 0 {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonNoDestination, Cause: e.by.Key,
			Message: e.title() + ": no host has a TCP port of that number; connections are closed",
		})
	}
	if len(c.Rest) == 0 {
		c.Rest = []*listenerv3.Filter{resource.TCPProxy(resource.BlackHoleCluster)}
	}
	return c
}

// addresses are where the listener is. By default that is the loopback.
func (e egress) addresses(f node.Facet) (*corev3.Address, []*listenerv3.AdditionalAddress) {
	if e.path != "" {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: e.path}}}, nil
	}
	var more []*listenerv3.AdditionalAddress
	if e.spec.GetBind() == "" && f.IPv6 {
		more = []*listenerv3.AdditionalAddress{{Address: resource.SocketAddress(netip.IPv6Loopback().String(), e.number)}}
	}
	return resource.SocketAddress(e.at.String(), e.number), more
}
