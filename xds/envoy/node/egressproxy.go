package node

import (
	"slices"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// egressProxy is where a Sidecar sends connections to hosts that the mesh does not know.
type egressProxy struct {
	cluster string // empty: to where the caller wanted
	lost    string // the Sidecar whose egress proxy the proxies do not see: NAMESPACE/NAME; empty: none
}

// egressProxyOf is the egress proxy of the Sidecar, or nowhere if the proxy does not see it.
func egressProxyOf(n Node, c effectiveConfig, o *federation.Object, r *federation.Reader) egressProxy {
	spec := o.Spec.(*networking.Sidecar)
	to := spec.GetOutboundTrafficPolicy().GetEgressProxy()
	if to == nil {
		return egressProxy{}
	}
	seen := Facet{Scope: ScopeImported, Namespace: n.Namespace, Egress: c.imports, Labels: c.labels}
	host, number := federation.ResolveHost(to.GetHost(), o.Key.Namespace), to.GetPort().GetNumber()
	for _, s := range r.ByHostname(host) {
		if real, is := r.AliasTarget(s, seen.Covers); is && seen.Covers(s) {
			host = real
			break
		}
	}
	services := slices.DeleteFunc(slices.Clone(r.ByHostname(host)), func(s *federation.Service) bool {
		p, has := s.Port(uint16(number))
		_, isAlias := r.AliasTarget(s, seen.Covers)
		return !seen.Covers(s) || isAlias || !has || p.Protocol.Transport() != federation.TransportTCP
	})
	callers := destinationrule.Callers{Namespace: n.Namespace, Labels: seen.HasLabels}
	lacks := func(s *federation.Service) bool {
		rule, _ := destinationrule.Merge(s, callers, r)
		_, has := rule.Subset(to.GetSubset())
		return to.GetSubset() != "" && !has
	}
	if len(services) == 0 || slices.ContainsFunc(services, lacks) || number != uint32(uint16(number)) {
		return egressProxy{resource.BlackHoleCluster, o.Key.Namespace + "/" + o.Key.Name}
	}
	return egressProxy{cluster: resource.SubsetClusterName(host, uint16(number), to.GetSubset())}
}
