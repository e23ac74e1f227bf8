package outbound

import (
	"net/netip"
	"slices"

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

// withConnections makes the listener of one service port.
func withConnections(v *facet.View, l *listenerv3.Listener, c route.Connections) *listenerv3.Listener {
	addNamed(v, l, c.Named)
	l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{Filters: c.Rest})
	return l
}

// withDetected adds the chain for connections that turn out to be HTTP, if nothing says what
// the port speaks.
func withDetected(v *facet.View, l *listenerv3.Listener, p service.ServedPort) *listenerv3.Listener {
	if service.Detected(v, p.Port) {
		listener.Detect(v, l, resource.HTTPInspectorFilter())
		l.FilterChains = append(l.FilterChains, detectedChain(v, p, &listenerv3.FilterChainMatch{}))
	}
	return l
}

// detectedChain routes the requests to the port by routes of its own: whatever their host,
// they are for the service whose address was dialed.
func detectedChain(v *facet.View, p service.ServedPort, match *listenerv3.FilterChainMatch) *listenerv3.FilterChain {
	routes := resource.TargetName(string(p.Service.Key.Hostname), p.Port.Number)
	match.ApplicationProtocols = resource.HTTPProtocols()
	filter := listener.RoutedHTTP(v, "outbound_"+routes, routes, p.Port.Number, false)
	return &listenerv3.FilterChain{FilterChainMatch: match, Filters: []*listenerv3.Filter{filter}}
}

// addNamed adds chains for connections by the server that they are for.
func addNamed(v *facet.View, l *listenerv3.Listener, named []route.NamedConnections) {
	if len(named) == 0 {
		return
	}
	listener.Detect(v, l, resource.TLSInspectorFilter())
	for _, n := range named {
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: n.Servers, TransportProtocol: "tls"},
			Filters:          n.Filters,
		})
	}
}

// servers routes the TLS connections of a port to services that have no VIP to
// be caught at: by the name of the server. The first service has a name.
func servers(v *facet.View, number uint16) []route.NamedConnections {
	named := serverNames{view: v, taken: map[string]bool{}}
	services := v.Reader.SelectOnPort(number, func(s *federation.Service) bool {
		p, ok := service.TCPPort(s, number)
		return ok && v.Sees(s) && service.ByServerName(service.ServedPort{Service: s, Port: p}, v.Facet)
	})
	for group := range service.ByHostname(slices.Values(services)) {
		owner, _ := service.OwnerAmong(v, v.Reader.ByHostname(group[0].Key.Hostname), number)
		if owner.Service == nil || !v.Exposes(owner.Service, number) || !service.ByServerName(owner, v.Facet) ||
			service.IsAlias(v, owner.Service) {
			continue
		}
		named.add(owner, route.ConnectionsTo(v, owner, netip.Prefix{}))
	}
	return named.all
}

// serverNames collects connections by the name of the server.
type serverNames struct {
	view  *facet.View
	taken map[string]bool
	all   []route.NamedConnections
}

// add adds the connections to a port, those that are not told apart by the names of its service.
func (n *serverNames) add(p service.ServedPort, c route.Connections) {
	for _, named := range c.Named {
		n.claim(named.Servers, named.Filters)
	}
	names := append([]string{string(p.Service.Key.Hostname)}, service.PodDomains(p.Service)...)
	for _, alias := range service.Aliases(n.view, p.Service) {
		names = append(names, string(alias))
	}
	n.claim(slices.DeleteFunc(names, c.Routes), c.Rest)
}

func (n *serverNames) claim(servers []string, filters []*listenerv3.Filter) {
	servers = slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return n.taken[name] || !resource.IsServerName(name) })
	for _, name := range servers {
		n.taken[name] = true
	}
	if len(servers) > 0 {
		n.all = append(n.all, route.NamedConnections{Servers: servers, Filters: filters})
	}
}

// ownListener is the listener as the facet makes it, where that is another than
// that of the facets that more proxies share. A VIP that has a listener for
// everyone, but none for the namespace, belongs to a service whose hostname is
// another's there: connections to it go on.
func ownListener(v *facet.View, name string) *listenerv3.Listener {
	whole, shared := serviceListener(v, name), sharedListener(v, name)
	switch {
	case shared == nil:
		return whole
	case whole == nil && v.Facet.Has(node.Differs):
		return emptyListener(v, name)
	case whole == nil || proto.Equal(shared, whole):
		return nil
	}
	return whole
}

// sharedListener is what proxies have that the facet gives no listener.
func sharedListener(v *facet.View, name string) *listenerv3.Listener {
	for _, f := range v.Facet.Shared() {
		other := facet.Open(f, v.Reader)
		if l := Listener(other, name); l != nil {
			return l
		}
	}
	return nil
}

// emptyListener has connections go on.
func emptyListener(v *facet.View, name string) *listenerv3.Listener {
	vip, number, _ := resource.ParseListener(name)
	l := listener.New(name, vip.String(), number)
	l.BindToPort = wrapperspb.Bool(false)
	if vip.IsUnspecified() && v.Facet.IPv6 {
		listener.AlsoIPv6(l, number)
	}
	return withConnections(v, l, route.Connections{Rest: []*listenerv3.Filter{listener.PassOn(v)}})
}
