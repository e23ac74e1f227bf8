package envoy

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// ruledHere tells that the facet is the one that makes the service's clusters: a
// facet of a namespace's own rules makes those only for which the namespace has
// a rule that others do not see.
func (b *builder) ruledHere(s *federation.Service) bool {
	return b.facet.Scope != scopeOwn || b.ownRule(s) != nil
}

// ownRule is the rule that callers in the facet's namespace have for themselves.
func (b *builder) ownRule(s *federation.Service) *federation.Object {
	for o := range b.reader.ObjectsFor(destinationRuleKind, s.Key.Hostname) {
		if _, ok := o.Spec.(*networking.DestinationRule); ok && o.Key.Namespace == b.facet.Namespace && s.Key.Namespace != b.facet.Namespace {
			return o
		}
	}
	return nil
}
