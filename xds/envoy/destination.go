package envoy

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// Callers are the facet's proxies. What stands for many namespaces is built by
// the rules that everyone sees; node.ScopeOwn has what a namespace sees beside these.
func (b *builder) callers() destinationrule.Callers {
	switch b.facet.Scope {
	case node.ScopeOwn, node.ScopeRoutes, node.ScopeProxyRoutes, node.ScopeGateway, node.ScopeTargets:
		return destinationrule.Callers{Namespace: b.facet.Namespace, Labels: b.facet.HasLabels}
	}
	return destinationrule.Everyone()
}

// ruledHere tells that the facet is the one that makes the service's clusters: a
// facet of a namespace's own rules makes those only for which the namespace has
// rules that others do not see.
func (b *builder) ruledHere(s *federation.Service) bool {
	return b.facet.Scope != node.ScopeOwn || destinationrule.Differ(s, b.callers(), b.reader)
}
