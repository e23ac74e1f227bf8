package envoy

import (
	"maps"
	"slices"
	"strconv"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/edge"
	"isthmus.dev/isthmus/xds/envoy/headless"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/proxyless"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/snidnat"
)

// Fixed returns the names that exist for everyone with this facet, whatever the
// services. When what it read changes, it is to be asked again, and every name
// that it gave before or gives now must be built again.
func Fixed(t resource.Type, f node.Facet, r *federation.Reader) []string {
	switch {
	case f.GRPC:
		return proxyless.Fixed(t, f, r)
	case f.Scope == node.ScopeGateway:
		return edge.Names(t, f, r)
	case t == resource.ClusterType && f.Scope == node.ScopeStatic:
		return []string{resource.BlackHoleCluster, resource.InboundPassthroughCluster, resource.PassthroughCluster}
	case t == resource.ListenerType && f.Scope == node.ScopeCapture:
		return []string{resource.VirtualOutbound}
	case t == resource.ListenerType && f.Scope == node.ScopeInbound:
		return []string{resource.VirtualInbound}
	case f.Scope == node.ScopePods:
		return headless.Names(t, f, r)
	case f.Scope == node.ScopePassed:
		return snidnat.PodNames(f, r)
	case t == resource.ListenerType && f.Scope == node.ScopeNames:
		return []string{resource.NamesListener}
	case t == resource.ListenerType && f.Scope == node.ScopeHTTPProxy:
		return []string{resource.HTTPProxyListener(f.Port)}
	case t == resource.RouteType && f.Scope == node.ScopeProxyRoutes:
		return []string{resource.HTTPProxyRoutes}
	}
	return nil
}

// Contributes returns the names that exist because of one service, sorted. It
// depends on the service's spec, on the objects that Speaks tells of, on the specs of
// other services of the hostname and, where ContributesByEndpoint says so, on the
// service's endpoints.
//
// When a service comes, goes or changes its spec, every name that it contributed
// before or contributes now must be built again, even if the name existed and
// other services contribute it too: who wins a name may have changed.
func Contributes(t resource.Type, f node.Facet, s *federation.Service, snapshot *federation.Snapshot) []string {
	if !f.Covers(s) || !service.HasPlace(f, s, snapshot) {
		return nil
	}
	if f.Scope == node.ScopePrivate && node.IsPublic(s) && !service.MayDiffer(f, s.Key.Hostname, snapshot) {
		return nil // as everyone has it
	}
	if f.Balanced && !destination.CallersChoose(s, snapshot) {
		return nil
	}
	if f.Scope == node.ScopePassed {
		return snidnat.Names(t, s, destinationrule.SubsetNames(s.Key.Hostname, snapshot))
	}
	var names []string
	for _, p := range s.Ports {
		if p.Protocol.Transport() == federation.TransportTCP {
			names = appendNames(names, t, f, service.ServedPort{Service: s, Port: p})
		}
	}
	if isClusters := t == resource.ClusterType || t == resource.EndpointType; isClusters && f.Offers() {
		names = appendSubsets(names, s.Key.Hostname, destinationrule.SubsetNames(s.Key.Hostname, snapshot))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ContributesByEndpoint tells that the names that exist because of the service
// depend on its endpoints: listeners of a headless service are at its pods.
func ContributesByEndpoint(t resource.Type, f node.Facet, s *federation.Service) bool {
	return t == resource.ListenerType && f.Offers() && service.IsHeadless(s)
}

// appendSubsets adds the names of the clusters' subsets, impossible ones excepted.
func appendSubsets(clusters []string, host federation.Hostname, subsets []string) []string {
	for _, cluster := range slices.Clone(clusters) {
		id, _ := resource.ParseClusterName(cluster)
		for _, subset := range subsets {
			if name := resource.SubsetClusterName(host, id.Port, subset); resource.ValidateName(name) == nil {
				clusters = append(clusters, name)
			}
		}
	}
	return clusters
}

// Speaks returns the hostnames and wildcards of the services to whose names the
// object contributes.
func Speaks(o *federation.Object) []string {
	if rule, ok := destinationrule.Spec(o); ok && (len(rule.GetSubsets()) > 0 || destinationrule.Ejects(rule) || destinationrule.LetsChoose(rule)) {
		return destinationrule.Hosts(o) // subsets have clusters of their own, and places and gateways may matter
	}
	if o.Key == federation.MeshSettingsKey {
		return []string{"*"} // places may matter anywhere
	}
	return nil
}

func appendNames(names []string, t resource.Type, f node.Facet, p service.ServedPort) []string {
	reserved := p.Port.Number == resource.OutboundPort || p.Port.Number == resource.InboundPort
	http := p.Port.Protocol.IsHTTP()
	switch {
	case f.GRPC:
		return proxyless.AppendTargets(names, t, f, p)
	case t == resource.ClusterType && f.Offers(),
		t == resource.EndpointType && f.Offers() && (p.Service.Resolution == federation.ClientSideLB || f.Balanced):
		return append(names, resource.ClusterName(p.Service.Key.Hostname, p.Port.Number))
	case t == resource.ListenerType && f.Offers() && http && !reserved:
		return append(names, resource.WildcardListener(p.Port.Number))
	case t == resource.ListenerType && f.Offers() && !http:
		if service.ByServerName(p, f) && !reserved {
			names = append(names, resource.WildcardListener(p.Port.Number))
		}
		for _, vip := range service.ListenerVIPs(p.Service, f) {
			names = append(names, resource.VIPListener(vip, p.Port.Number))
		}
		if len(service.RangesOf(p.Service, f)) > 0 && !reserved {
			names = append(names, resource.WildcardListener(p.Port.Number))
		}
		return headless.AppendPodListeners(names, f, p)
	case t == resource.RouteType && f.Scope == node.ScopeRoutes && http && !reserved:
		return append(names, strconv.Itoa(int(p.Port.Number)))
	case t == resource.RouteType && f.Scope == node.ScopeProxyRoutes: // a TCP service may own a hostname
		return append(names, resource.HTTPProxyRoutes)
	}
	return names
}

// Names returns all names of the facet, sorted: the definition from nothing,
// with which whatever is kept incrementally must agree. Build may still find
// that another facet has the better claim to a name, and return nil.
func Names(t resource.Type, f node.Facet, s *federation.Snapshot) []string {
	found := map[string]bool{}
	for _, name := range Fixed(t, f, s.Read()) {
		found[name] = true
	}
	for svc := range s.Services() {
		for _, name := range Contributes(t, f, svc, s) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
