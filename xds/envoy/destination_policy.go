package envoy

import (
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

// hasSubset tells that the facet's proxies know of a subset of the service.
func (b *builder) hasSubset(s *federation.Service, subset string) bool {
	_, ok := b.ruling(s).Subset(subset)
	return ok
}
