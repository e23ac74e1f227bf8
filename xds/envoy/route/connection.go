package route

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/transport"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// Connections says how connections to a service port are routed: some are
// told apart by the name of the server that their TLS asks for.
type Connections struct {
	Named []NamedConnections
	Rest  []*listenerv3.Filter // none: nothing is left
}

// NamedConnections are those for some servers.
type NamedConnections struct {
	Servers []string // lower case
	Filters []*listenerv3.Filter
}

// Routes reports whether connections for the server are among those that are told apart.
// A name is not left to rest because a route has a wildcard for it.
func (c Connections) Routes(server string) bool {
	return slices.ContainsFunc(c.Named, func(n NamedConnections) bool {
		return slices.ContainsFunc(n.Servers, func(pattern string) bool { return resource.Covers(pattern, server) })
	})
}

// ConnectionsTo routes connections to the port at all of the addresses; the invalid
// prefix matches any. A connection that matches no route reaches the service.
func ConnectionsTo(v *facet.View, p service.ServedPort, to netip.Prefix) Connections {
	own := Connections{Rest: toService(v, p)}
	r := RuleFor(v, p.Service.Key.Hostname, p.Port.Number)
	if r == nil {
		return own
	}
	c, err := r.connections(to, service.AsksByName(p.Port.Protocol))
	if err != nil {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonInvalidRule, Cause: r.Object.Subject(),
			Message: fmt.Sprintf("%s is excluded for %s:%d: %v", r.Object.SubjectTitle(), p.Service.Key.Hostname, p.Port.Number, err),
		})
		return own
	}
	if c.Rest == nil {
		c.Rest = own.Rest
	}
	return c
}

func toService(v *facet.View, p service.ServedPort) []*listenerv3.Filter {
	return tcpTo(v, target{p, ""})
}

// tcpTo sends connections to a target as its policy says.
func tcpTo(v *facet.View, t target) []*listenerv3.Filter {
	proxy := resource.NewTCP(t.cluster())
	applyTCP(v, proxy, t)
	f := resource.Filter(resource.TCPProxyFilter, proxy)
	v.Made(f, t.Service)
	return resolving(v, &t, asBytes(v, f, &t))
}

// connections compiles the routes for TLS if the port speaks it, and else those for
// TCP, as with Istio. Of routes that match the same, the first has it.
func (r *Rule) connections(to netip.Prefix, tls bool) (Connections, error) {
	if tls {
		return r.tlsConnections(to)
	}
	var c Connections
	for i, in := range r.Spec.GetTcp() {
		found, err := r.Takes(in, to)
		if err != nil {
			return c, fmt.Errorf("tcp[%d]%w", i, err)
		}
		if found {
			c.Rest = r.TCPSplit(in.GetRoute(), nil)
			break
		}
	}
	return c, nil
}

func (r *Rule) tlsConnections(to netip.Prefix) (Connections, error) {
	var c Connections
	taken := map[string]bool{}
	for i, route := range r.Spec.GetTls() {
		for j, match := range route.GetMatch() {
			in, err := virtualservice.InSubnets(match.GetDestinationSubnets(), to)
			if err != nil {
				return c, fmt.Errorf("tls[%d].match[%d].destinationSubnets: %w", i, j, err)
			}
			if !in || !r.ConcernsConnection(match) {
				continue
			}
			var servers []string
			for _, name := range match.GetSniHosts() {
				name = strings.ToLower(name)
				if !resource.IsServerName(name) {
					return c, fmt.Errorf("tls[%d].match[%d].sniHosts: %q is not the name of a server", i, j, name)
				}
				if !taken[name] {
					taken[name], servers = true, append(servers, name)
				}
			}
			if len(servers) > 0 {
				c.Named = append(c.Named, NamedConnections{servers, r.TCPSplit(route.GetRoute(), servers)})
			}
		}
	}
	return c, nil
}

// Takes reports whether one of the route's matches is for connections to all of the
// addresses.
func (r *Rule) Takes(route *networking.TCPRoute, to netip.Prefix) (bool, error) {
	for i, match := range route.GetMatch() {
		in, err := virtualservice.InSubnets(match.GetDestinationSubnets(), to)
		if err != nil {
			return false, fmt.Errorf(".match[%d].destinationSubnets: %w", i, err)
		}
		if in && r.ConcernsConnection(match) {
			return true, nil
		}
	}
	return len(route.GetMatch()) == 0, nil
}

// connectionMatch is what matches of TLS and of TCP have in common.
type connectionMatch interface {
	GetPort() uint32
	GetGateways() []string
	GetSourceLabels() map[string]string
	GetSourceNamespace() string
}

// ConcernsConnection reports whether the match is for the facet's proxies and the rule's port. As in Istio, the source of a match does
// not count at gateways.
func (r *Rule) ConcernsConnection(m connectionMatch) bool {
	return r.isFor(m.GetGateways()) && (m.GetPort() == 0 || m.GetPort() == uint32(r.Port)) &&
		(len(r.Gateways) > 0 || isSource(r.View, m.GetSourceNamespace(), m.GetSourceLabels()))
}

// TCPSplit sends connections to destinations by weight. Those to a destination
// that does not exist are closed. The servers are those for which the connections are, as far as
// their TLS says it.
func (r *Rule) TCPSplit(destinations []*networking.RouteDestination, servers []string) []*listenerv3.Filter {
	if len(destinations) > 1 {
		destinations = slices.DeleteFunc(slices.Clone(destinations), func(d *networking.RouteDestination) bool { return d.GetWeight() <= 0 })
	}
	if len(destinations) == 0 {
		r.View.LeaveOut(r.missing("a route for connections has no destination with a weight"))
		return []*listenerv3.Filter{resource.TCPProxy(resource.BlackHoleCluster)}
	}
	scale := uint32(1)
	if len(destinations) > 1 {
		scale = virtualservice.ScaleOf(destinations)
	}
	var shares []*tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight
	var first *target
	for _, d := range destinations {
		cluster := resource.BlackHoleCluster
		to, missing := r.connectionTarget(d.GetDestination(), servers, len(destinations) > 1)
		if missing != "" {
			lacks(r, d.GetDestination(), missing)
		} else {
			cluster = to.cluster()
			if first == nil {
				first = &to
			}
		}
		share := max(uint32(max(d.GetWeight(), 0))/scale, 1)
		shares = append(shares, &tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight{Name: cluster, Weight: share})
	}
	proxy := resource.NewTCP(shares[0].GetName())
	if len(shares) > 1 {
		proxy.StatPrefix = "split_" + shares[0].GetName()
		proxy.ClusterSpecifier = &tcpproxyv3.TcpProxy_WeightedClusters{WeightedClusters: &tcpproxyv3.TcpProxy_WeightedCluster{Clusters: shares}}
	}
	if first != nil {
		applyTCP(r.View, proxy, *first)
	}
	f := resource.Filter(resource.TCPProxyFilter, proxy)
	r.View.CausedBy(r.Object, f)
	r.View.Made(f, nil)
	return resolving(r.View, first, asBytes(r.View, f, first))
}

// connectionTarget is target for connections to the servers, which one destination gets or several share.
func (r *Rule) connectionTarget(d *networking.Destination, servers []string, shared bool) (to target, missing string) {
	to, missing = r.target(d)
	switch {
	case missing != "" || !to.Service.IsDynamic():
		return to, missing
	case shared:
		return to, fmt.Sprintf("the destination %s resolves the names that callers ask for, and shares connections with no other",
			to.Service.Key.Hostname)
	}
	return to, to.askedFor(servers)
}

// asBytes has the proxy of the target tell connections from requests, where nothing says what
// its port speaks: mutual TLS offers the protocol of requests unless a filter says another. TLS
// of other servers offers none.
func asBytes(v *facet.View, tcp *listenerv3.Filter, t *target) []*listenerv3.Filter {
	if t == nil || !service.Detected(v, t.Port) || destinationrule.IsTLS(v.TrafficPolicyFor(t.Service, t.Port.Number, t.subset).GetTls()) {
		return []*listenerv3.Filter{tcp}
	}
	return []*listenerv3.Filter{resource.OfferFilter(transport.MeshProtocol), tcp}
}
