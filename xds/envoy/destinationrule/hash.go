package destinationrule

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// HashPolicies say what of a request decides about its endpoint; none where the
// policy does not hash, or by a name that cannot be. Routes to the policy's
// clusters need them.
func HashPolicies(policy *networking.TrafficPolicy) []*routev3.RouteAction_HashPolicy {
	hash := policy.GetLoadBalancer().GetConsistentHash()
	p := &routev3.RouteAction_HashPolicy{}
	switch key := hash.GetHashKey().(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{
			Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: key.HttpHeaderName},
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: hashCookie(key.HttpCookie)}
	case *networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: key.UseSourceIp},
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: key.HttpQueryParameterName},
		}
	}
	if p.PolicySpecifier == nil || p.ValidateAll() != nil {
		return nil
	}
	return []*routev3.RouteAction_HashPolicy{p}
}

func hashCookie(cookie *networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie) *routev3.RouteAction_HashPolicy_Cookie {
	c := &routev3.RouteAction_HashPolicy_Cookie{Name: cookie.GetName(), Path: cookie.GetPath(), Ttl: cookie.GetTtl()}
	for _, a := range cookie.GetAttributes() {
		c.Attributes = append(c.Attributes, &routev3.RouteAction_HashPolicy_CookieAttribute{Name: a.GetName(), Value: a.GetValue()})
	}
	return c
}

// tcpHashPolicies are the same for connections: only their source can decide.
func tcpHashPolicies(policy *networking.TrafficPolicy) []*typev3.HashPolicy {
	if !policy.GetLoadBalancer().GetConsistentHash().GetUseSourceIp() {
		return nil
	}
	return []*typev3.HashPolicy{{PolicySpecifier: &typev3.HashPolicy_SourceIp_{SourceIp: &typev3.HashPolicy_SourceIp{}}}}
}

// ApplyTCP puts into a TCP filter what the policy says about its connections.
func ApplyTCP(proxy *tcpproxyv3.TcpProxy, policy *networking.TrafficPolicy) {
	tcp := policy.GetConnectionPool().GetTcp()
	proxy.HashPolicy = tcpHashPolicies(policy)
	if tunnel := policy.GetTunnel(); tunnel != nil {
		setTunnel(proxy, tunnel)
	}
	if tcp.GetIdleTimeout() != nil {
		proxy.IdleTimeout = tcp.GetIdleTimeout()
	}
	if tcp.GetMaxConnectionDuration() != nil {
		proxy.MaxDownstreamConnectionDuration = tcp.GetMaxConnectionDuration()
	}
}

// setTunnel sends connections through a proxy that connects to the target.
func setTunnel(proxy *tcpproxyv3.TcpProxy, tunnel *networking.TrafficPolicy_TunnelSettings) {
	if RefusedTunnel(tunnel) != "" {
		proxy.ClusterSpecifier = &tcpproxyv3.TcpProxy_Cluster{Cluster: resource.BlackHoleCluster}
		return
	}
	proxy.TunnelingConfig = &tcpproxyv3.TcpProxy_TunnelingConfig{
		Hostname: net.JoinHostPort(tunnel.GetTargetHost(), strconv.FormatUint(uint64(tunnel.GetTargetPort()), 10)),
		UsePost:  tunnel.GetProtocol() == "POST",
	}
}

// RefusedTunnel says why connections cannot be sent through the tunnel; they are never sent
// without it.
func RefusedTunnel(tunnel *networking.TrafficPolicy_TunnelSettings) string {
	host, port := tunnel.GetTargetHost(), tunnel.GetTargetPort()
	_, notIP := netip.ParseAddr(host)
	switch {
	case tunnel == nil:
	case tunnel.GetProtocol() != "" && tunnel.GetProtocol() != "CONNECT" && tunnel.GetProtocol() != "POST":
		return "protocol is CONNECT or POST"
	case port == 0 || port > math.MaxUint16:
		return "targetPort is not a port"
	case strings.Contains(host, "%") || notIP != nil && !resource.IsServerName(strings.ToLower(host)): // "%" begins a command of Envoy
		return "targetHost is neither a hostname nor an IP address"
	}
	return ""
}
