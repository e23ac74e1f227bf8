package envoy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1"
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

// connectionsTo routes connections to the port at the address; the invalid
// address stands for any. Who matches no route reaches the service.
func (b *builder) connectionsTo(p servedPort, vip netip.Addr) connections {
	own := connections{rest: b.toService(p)}
	r := b.ruleFor(p.service.Key.Hostname, p.port.Number)
	if r == nil {
		return own
	}
	c, err := r.connections(vip)
	if err != nil {
		b.leaveOut(Reason{Code: ReasonInvalidRule, Cause: r.object.Key, Message: fmt.Sprintf("%s is left out for %s:%d: %v", r.object.Key, p.service.Key.Hostname, p.port.Number, err)})
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
	proxy := newTCP(t.cluster())
	applyTCP(proxy, b.trafficPolicyFor(t.service, t.port.Number, t.subset))
	return filter(tcpProxyFilter, proxy)
}

// connections compiles the routes for TLS, then those for TCP. Of routes that
// match the same, the first has it.
func (r *rule) connections(at netip.Addr) (connections, error) {
	var c connections
	taken := map[string]bool{}
	for i, in := range r.spec.GetTls() {
		for j, match := range in.GetMatch() {
			at, err := inSubnets(match.GetDestinationSubnets(), at)
			if err != nil {
				return c, fmt.Errorf("tls[%d].match[%d].destinationSubnets: %w", i, j, err)
			}
			if !at || !r.concernsConnection(match) {
				continue
			}
			var servers []string
			for _, name := range match.GetSniHosts() {
				name = strings.ToLower(name)
				if !isServerName(name) {
					return c, fmt.Errorf("tls[%d].match[%d].sniHosts: %q is no name of a server", i, j, name)
				}
				if !taken[name] {
					taken[name], servers = true, append(servers, name)
				}
			}
			if len(servers) > 0 {
				c.named = append(c.named, namedConnections{servers, r.tcpSplit(in.GetRoute())})
			}
		}
	}
	for i, in := range r.spec.GetTcp() {
		found, err := r.takes(in, at)
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

// takes tells that one of the route's matches is for connections to the address.
func (r *rule) takes(in *networking.TCPRoute, at netip.Addr) (bool, error) {
	for i, match := range in.GetMatch() {
		at, err := inSubnets(match.GetDestinationSubnets(), at)
		if err != nil {
			return false, fmt.Errorf(".match[%d].destinationSubnets: %w", i, err)
		}
		if at && r.concernsConnection(match) {
			return true, nil
		}
	}
	return len(in.GetMatch()) == 0, nil
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

// inSubnets tells that the address is in one of the subnets, where there are any; an
// unknown address is in none.
func inSubnets(subnets []string, at netip.Addr) (bool, error) {
	in := len(subnets) == 0
	for _, text := range subnets {
		subnet, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			subnet, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return false, fmt.Errorf("%q is no subnet", text)
		}
		in = in || at.IsValid() && subnet.Contains(at)
	}
	return in, nil
}

// tcpSplit sends connections to destinations by weight. Those to a destination
// that does not exist are closed.
func (r *rule) tcpSplit(destinations []*networking.RouteDestination) *listenerv3.Filter {
	if len(destinations) > 1 {
		destinations = slices.DeleteFunc(slices.Clone(destinations), func(d *networking.RouteDestination) bool { return d.GetWeight() <= 0 })
	}
	if len(destinations) == 0 {
		r.leaveOut(r.missing("a route for connections has no destination with a weight"))
		return tcpProxy(blackHoleCluster)
	}
	scale := uint32(1)
	if len(destinations) > 1 {
		scale = scaleOf(destinations)
	}
	var shares []*tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight
	var first *target
	for _, d := range destinations {
		cluster := blackHoleCluster
		if to, missing := r.target(d.GetDestination()); missing != "" {
			r.leaveOut(r.missing(missing))
		} else if cluster = to.cluster(); first == nil {
			first = &to
		}
		share := max(uint32(max(d.GetWeight(), 0))/scale, 1)
		shares = append(shares, &tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight{Name: cluster, Weight: share})
	}
	proxy := newTCP(shares[0].GetName())
	if len(shares) > 1 {
		proxy.StatPrefix = "split_" + shares[0].GetName()
		proxy.ClusterSpecifier = &tcpproxyv3.TcpProxy_WeightedClusters{WeightedClusters: &tcpproxyv3.TcpProxy_WeightedCluster{Clusters: shares}}
	}
	if first != nil {
		applyTCP(proxy, r.trafficPolicyFor(first.service, first.port.Number, first.subset))
	}
	f := filter(tcpProxyFilter, proxy)
	r.causedBy(r.object, f)
	return f
}

func newTCP(cluster string) *tcpproxyv3.TcpProxy {
	return &tcpproxyv3.TcpProxy{
		StatPrefix:         cluster,
		ClusterSpecifier:   &tcpproxyv3.TcpProxy_Cluster{Cluster: cluster},
		MaxConnectAttempts: wrapperspb.UInt32(tcpConnectAttempts),
	}
}
