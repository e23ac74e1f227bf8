package envoy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// connections is what becomes of the connections to a service port: some are
// told apart by the name of the server that their TLS asks for.
type connections struct {
	named []namedConnections
	rest  *listenerv3.Filter // nil: nothing is left
}

type namedConnections struct {
	servers []string // lower case
	filter  *listenerv3.Filter
}

// routes tells that connections for the server are among those that are told apart.
// A name is not left to rest because a route has a wildcard for it.
func (c connections) routes(server string) bool {
	return slices.ContainsFunc(c.named, func(n namedConnections) bool {
		return slices.ContainsFunc(n.servers, func(pattern string) bool { return resource.Covers(pattern, server) })
	})
}

// connectionsTo routes connections to the port at all of the addresses; the invalid
// prefix stands for any. Who matches no route reaches the service.
func (b *builder) connectionsTo(p servedPort, to netip.Prefix) connections {
	own := connections{rest: b.toService(p)}
	r := b.ruleFor(p.service.Key.Hostname, p.port.Number)
	if r == nil {
		return own
	}
	c, err := r.connections(to, asksByName(p.port.Protocol))
	if err != nil {
		b.leaveOut(resource.Reason{Code: resource.ReasonInvalidRule, Cause: r.object.Key, Message: fmt.Sprintf("%s is left out for %s:%d: %v", r.object.Key, p.service.Key.Hostname, p.port.Number, err)})
		return own
	}
	if c.rest == nil {
		c.rest = own.rest
	}
	return c
}

func (b *builder) toService(p servedPort) *listenerv3.Filter {
	return b.tcpTo(target{p, ""})
}

// tcpTo sends connections to a target as its policy says.
func (b *builder) tcpTo(t target) *listenerv3.Filter {
	proxy := resource.NewTCP(t.cluster())
	b.applyTCP(proxy, t)
	f := resource.Filter(resource.TCPProxyFilter, proxy)
	b.made(f, t.service)
	return f
}

// connections compiles the routes for TLS if the port speaks it, and else those for
// TCP, as with Istio. Of routes that match the same, the first has it.
func (r *rule) connections(to netip.Prefix, tls bool) (connections, error) {
	if tls {
		return r.tlsConnections(to)
	}
	var c connections
	for i, in := range r.spec.GetTcp() {
		found, err := r.takes(in, to)
		if err != nil {
			return c, fmt.Errorf("tcp[%d]%w", i, err)
		}
		if found {
			c.rest = r.tcpSplit(in.GetRoute())
			break
		}
	}
	return c, nil
}

func (r *rule) tlsConnections(to netip.Prefix) (connections, error) {
	var c connections
	taken := map[string]bool{}
	for i, route := range r.spec.GetTls() {
		for j, match := range route.GetMatch() {
			in, err := virtualservice.InSubnets(match.GetDestinationSubnets(), to)
			if err != nil {
				return c, fmt.Errorf("tls[%d].match[%d].destinationSubnets: %w", i, j, err)
			}
			if !in || !r.concernsConnection(match) {
				continue
			}
			var servers []string
			for _, name := range match.GetSniHosts() {
				name = strings.ToLower(name)
				if !resource.IsServerName(name) {
					return c, fmt.Errorf("tls[%d].match[%d].sniHosts: %q is no name of a server", i, j, name)
				}
				if !taken[name] {
					taken[name], servers = true, append(servers, name)
				}
			}
			if len(servers) > 0 {
				c.named = append(c.named, namedConnections{servers, r.tcpSplit(route.GetRoute())})
			}
		}
	}
	return c, nil
}

// takes tells that one of the route's matches is for connections to all of the
// addresses.
func (r *rule) takes(route *networking.TCPRoute, to netip.Prefix) (bool, error) {
	for i, match := range route.GetMatch() {
		in, err := virtualservice.InSubnets(match.GetDestinationSubnets(), to)
		if err != nil {
			return false, fmt.Errorf(".match[%d].destinationSubnets: %w", i, err)
		}
		if in && r.concernsConnection(match) {
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

func (r *rule) concernsConnection(m connectionMatch) bool {
	return r.isFor(m.GetGateways()) && (m.GetPort() == 0 || m.GetPort() == uint32(r.port)) &&
		r.isSource(m.GetSourceNamespace(), m.GetSourceLabels())
}

// tcpSplit sends connections to destinations by weight. Those to a destination
// that does not exist are closed.
func (r *rule) tcpSplit(destinations []*networking.RouteDestination) *listenerv3.Filter {
	if len(destinations) > 1 {
		destinations = slices.DeleteFunc(slices.Clone(destinations), func(d *networking.RouteDestination) bool { return d.GetWeight() <= 0 })
	}
	if len(destinations) == 0 {
		r.leaveOut(r.missing("a route for connections has no destination with a weight"))
		return resource.TCPProxy(resource.BlackHoleCluster)
	}
	scale := uint32(1)
	if len(destinations) > 1 {
		scale = virtualservice.ScaleOf(destinations)
	}
	var shares []*tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight
	var first *target
	for _, d := range destinations {
		cluster := resource.BlackHoleCluster
		if to, missing := r.target(d.GetDestination()); missing != "" {
			r.leaveOut(r.missing(missing))
		} else if cluster = to.cluster(); first == nil {
			first = &to
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
		r.applyTCP(proxy, *first)
	}
	f := resource.Filter(resource.TCPProxyFilter, proxy)
	r.causedBy(r.object, f)
	r.made(f, nil)
	return f
}
