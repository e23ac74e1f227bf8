package envoy

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
)

// Ruling is what the rules that the facet's proxies see say of the service.
func (b *builder) ruling(s *federation.Service) destinationrule.Ruling {
	r, reasons := destinationrule.RulingOn(s, b.callers(), b.reader)
	b.reasons = append(b.reasons, reasons...)
	return r
}

// trafficPolicyFor is what the facet's proxies are told about requests to a port
// of the service or one of its subsets; the empty subset is the whole service.
// It is never nil.
func (b *builder) trafficPolicyFor(s *federation.Service, port uint16, subset string) *networking.TrafficPolicy {
	r := b.ruling(s)
	part, _ := r.Subset(subset)
	return r.PolicyOf(port, part)
}

// hashPolicies are the policy's for requests to a port of the service.
func (b *builder) hashPolicies(s *federation.Service, port uint16, subset string) []*routev3.RouteAction_HashPolicy {
	hash := destinationrule.HashPolicies(b.trafficPolicyFor(s, port, subset))
	if len(hash) > 0 {
		b.causedByPolicy(s)
	}
	return hash
}

// applyTCP puts into a TCP filter what the policy says of connections to the target.
func (b *builder) applyTCP(proxy *tcpproxyv3.TcpProxy, t target) {
	policy := b.trafficPolicyFor(t.service, t.port.Number, t.subset)
	destinationrule.ApplyTCP(proxy, policy)
	if len(proxy.GetHashPolicy()) > 0 || policy.GetConnectionPool().GetTcp() != nil {
		b.causedByPolicy(t.service)
	}
}

// hasSubset tells that the facet's proxies know of a subset of the service.
func (b *builder) hasSubset(s *federation.Service, subset string) bool {
	_, ok := b.ruling(s).Subset(subset)
	return ok
}
