package envoy

import (
	"slices"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// hasSubset tells that a DestinationRule that the facet's proxies see gives the
// service the subset.
func (b *builder) hasSubset(s *federation.Service, name string) bool {
	for o := range b.reader.ObjectsFor(destinationRuleKind, s.Key.Hostname) {
		spec, ok := o.Spec.(*networking.DestinationRule)
		if ok && visibleFrom(spec.GetExportTo(), o.Key.Namespace, b.facet.Namespace) &&
			slices.ContainsFunc(spec.GetSubsets(), func(subset *networking.Subset) bool { return subset.GetName() == name }) {
			return true
		}
	}
	return false
}
