package envoy

import (
	"net/netip"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// asksByName tells that connections of the protocol begin with the name of the
// server that they are for.
func asksByName(p federation.Protocol) bool { return p == federation.TLS || p == federation.HTTPS }

// withConnections makes the listener of one service port.
func withConnections(l *listenerv3.Listener, c connections) *listenerv3.Listener {
	addNamed(l, c.named)
	l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{Filters: []*listenerv3.Filter{c.rest}})
	return l
}

// addNamed adds chains for connections by the server that they are for. A caller
// that lets the server speak first waits for detection.
func addNamed(l *listenerv3.Listener, named []namedConnections) {
	if len(named) == 0 {
		return
	}
	l.ListenerFilters = append(l.ListenerFilters, &listenerv3.ListenerFilter{
		Name: resource.TLSInspector, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: resource.Any(&tlsinspectorv3.TlsInspector{})},
	})
	l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(detection), true
	for _, n := range named {
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: n.servers, TransportProtocol: "tls"},
			Filters:          []*listenerv3.Filter{n.filter},
		})
	}
}

// servers routes the TLS connections of a port to services that have no VIP to
// be caught at: by the name of the server. The first service has a name.
func (b *builder) servers(number uint16) []namedConnections {
	var all []namedConnections
	taken := map[string]bool{}
	add := func(servers []string, f *listenerv3.Filter) {
		servers = slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return taken[name] || !resource.IsServerName(name) })
		for _, name := range servers {
			taken[name] = true
		}
		if len(servers) > 0 {
			all = append(all, namedConnections{servers, f})
		}
	}
	b.reader.SpecsOnPort(number) // such a service may come
	services := b.reader.Select(func(s *federation.Service) bool {
		p, ok := tcpPort(s, number)
		return ok && b.sees(s) && byServerName(servedPort{s, p}, b.facet)
	})
	for group := range byHostname(slices.Values(services)) {
		owner, _ := b.firstOwner(b.reader.ByHostname(group[0].Key.Hostname), number)
		if owner.service == nil || !byServerName(owner, b.facet) || b.isAlias(owner.service) {
			continue
		}
		c := b.connectionsTo(owner, netip.Prefix{})
		for _, n := range c.named {
			add(n.servers, n.filter)
		}
		names := append([]string{string(owner.service.Key.Hostname)}, podDomains(owner.service)...)
		for _, alias := range b.aliases(owner.service) {
			names = append(names, string(alias))
		}
		add(slices.DeleteFunc(names, c.routes), c.rest)
	}
	return all
}

// byServerName tells that connections to the port are told apart by the name of
// the server alone: the port speaks TLS and the service has no VIP.
func byServerName(p servedPort, f node.Facet) bool {
	return asksByName(p.port.Protocol) && len(listenerVIPs(p.service, f)) == 0
}

// ownListener is the listener as the facet makes it, where that is another than
// that of the facets that more proxies share. A VIP that has a listener for
// everyone, but none for the namespace, belongs to a service whose hostname is
// another's there: connections to it go on.
func (b *builder) ownListener(name string) *listenerv3.Listener {
	whole, shared := b.serviceListener(name), b.sharedListener(name)
	switch {
	case shared == nil:
		return whole
	case whole == nil && b.facet.Scope == node.ScopePrivate:
		return b.emptyListener(name)
	case whole == nil || proto.Equal(shared, whole):
		return nil
	}
	return whole
}

// sharedListener is what proxies have that the facet gives no listener.
func (b *builder) sharedListener(name string) *listenerv3.Listener {
	for _, f := range sharedWith(b.facet) {
		other := &builder{facet: f, reader: b.reader}
		if l := other.offeredListener(name); l != nil {
			return l
		}
	}
	return nil
}

// emptyListener has connections go on.
func (b *builder) emptyListener(name string) *listenerv3.Listener {
	vip, number, _ := resource.ParseListener(name)
	l := newListener(name, vip.String(), number)
	l.BindToPort = wrapperspb.Bool(false)
	if vip.IsUnspecified() && b.facet.IPv6 {
		alsoIPv6(l, number)
	}
	return withConnections(l, connections{rest: b.passOn()})
}

// sharedWith are the facets that give way to this one.
func sharedWith(f node.Facet) []node.Facet {
	f.Labels = ""
	public := f
	public.Scope, public.Namespace = node.ScopePublic, ""
	switch {
	case f.Scope == node.ScopePrivate:
		return []node.Facet{public}
	case f.Egress != "":
		f.Scope = node.ScopeImported
		return []node.Facet{f}
	}
	f.Scope = node.ScopePrivate
	return []node.Facet{f, public}
}
