package outbound

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// AppendCluster adds the cluster of a port.
func AppendCluster(names []string, _ node.Facet, p service.ServedPort) []string {
	return append(names, resource.ClusterName(p.Service.Key.Hostname, p.Port.Number))
}

// AppendAssignment adds the endpoints of the cluster of a port, if they are sent apart from it.
func AppendAssignment(names []string, f node.Facet, p service.ServedPort) []string {
	if p.Service.Resolution != federation.ClientSideLB && !f.Balanced {
		return names
	}
	return AppendCluster(names, f, p)
}

// AppendListeners adds the listeners that catch connections to a port.
func AppendListeners(names []string, f node.Facet, p service.ServedPort) []string {
	reserved := federation.TakenBySidecars(p.Port.Number, f.Agent)
	if p.Port.Protocol.IsHTTP() && !reserved {
		return append(names, resource.WildcardListener(p.Port.Number))
	}
	if p.Port.Protocol.IsHTTP() {
		return names
	}
	if (service.ByServerName(p, f) || service.ByHost(p) || service.ByPort(p, f)) && !reserved {
		names = append(names, resource.WildcardListener(p.Port.Number))
	}
	for _, vip := range service.ListenerVIPs(p.Service, f) {
		names = append(names, resource.VIPListener(vip, p.Port.Number))
	}
	if len(service.RangesOf(p.Service, f)) > 0 && !reserved {
		names = append(names, resource.WildcardListener(p.Port.Number))
	}
	return pods.AppendListeners(names, f, p)
}
