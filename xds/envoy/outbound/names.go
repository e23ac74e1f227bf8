package outbound

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/pods"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// AppendNames adds what exists for the callers of a port: its cluster and endpoints,
// and the listeners that catch connections to it.
func AppendNames(names []string, t resource.Type, f node.Facet, p service.ServedPort) []string {
	switch t {
	case resource.EndpointType:
		if p.Service.Resolution != federation.ClientSideLB && !f.Balanced {
			return names
		}
		return append(names, resource.ClusterName(p.Service.Key.Hostname, p.Port.Number))
	case resource.ClusterType:
		return append(names, resource.ClusterName(p.Service.Key.Hostname, p.Port.Number))
	case resource.ListenerType:
		return appendListeners(names, f, p)
	}
	return names
}

func appendListeners(names []string, f node.Facet, p service.ServedPort) []string {
	reserved := p.Port.Number == resource.OutboundPort || p.Port.Number == resource.InboundPort
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
