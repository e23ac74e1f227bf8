package facet

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// Callers are the facet's proxies. What is shared by many namespaces is built by
// the rules that everyone sees; node.ScopeNamespaced has what a namespace sees beside these.
func (v *View) Callers() destinationrule.Callers { return CallersOf(v.Facet) }

// CallersOf are the proxies of a facet.
func CallersOf(f node.Facet) destinationrule.Callers {
	if f.Has(node.NamespaceRules) {
		return destinationrule.Callers{Namespace: f.Namespace, Labels: f.HasLabels}
	}
	return destinationrule.Everyone()
}

// DestinationRule is the merged rules about the service that the facet's proxies see.
func (v *View) DestinationRule(s *federation.Service) destinationrule.Merged {
	r, reasons := destinationrule.Merge(s, v.Callers(), v.Reader)
	v.Reasons = append(v.Reasons, reasons...)
	return r
}

// TrafficPolicyFor is the policy of the facet's proxies for requests to a port
// of the service or one of its subsets; the empty subset is the whole service.
// It is never nil.
func (v *View) TrafficPolicyFor(s *federation.Service, port uint16, subset string) *networking.TrafficPolicy {
	r := v.DestinationRule(s)
	part, _ := r.Subset(subset)
	return r.PolicyOf(port, part)
}

// HasSubset reports whether the facet's proxies know of a subset of the service.
func (v *View) HasSubset(s *federation.Service, subset string) bool {
	_, ok := v.DestinationRule(s).Subset(subset)
	return ok
}
