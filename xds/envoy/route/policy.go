package route

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/facet"
)

// hashPolicies are the policy's for requests to a port of the service.
func hashPolicies(v *facet.View, s *federation.Service, port uint16, subset string) []*routev3.RouteAction_HashPolicy {
	hash := destinationrule.HashPolicies(v.TrafficPolicyFor(s, port, subset))
	if len(hash) > 0 {
		v.CausedByPolicy(s)
	}
	return hash
}

// applyTCP puts into a TCP filter what the policy says about connections to the target.
func applyTCP(v *facet.View, proxy *tcpproxyv3.TcpProxy, t target) {
	policy := v.TrafficPolicyFor(t.Service, t.Port.Number, t.subset)
	destinationrule.ApplyTCP(proxy, policy)
	if len(proxy.GetHashPolicy()) > 0 || policy.GetConnectionPool().GetTcp() != nil || policy.GetTunnel() != nil {
		v.CausedByPolicy(t.Service)
	}
}
