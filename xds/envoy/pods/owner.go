package pods

import (
	"cmp"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// AppendListeners adds the names of the listeners of a headless service at its
// pods, where the pods listen for the port.
func AppendListeners(names []string, f node.Facet, p service.ServedPort) []string {
	if !service.IsHeadless(p.Service) {
		return names
	}
	for _, group := range p.Service.Endpoints {
		name, declared := p.Port.DeclaredBy(group.Shard)
		if !declared {
			continue
		}
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			number, served := e.Port(name)
			if ip, isIP := e.Address.IP(); served && isIP && isCaptured(ip) && (ip.Is4() || f.IPv6) {
				names = append(names, resource.VIPListener(ip, number))
			}
		}
	}
	return names
}

// isCaptured reports whether connections to the address leave the pod, so that they are
// captured.
func isCaptured(ip netip.Addr) bool {
	return !ip.IsUnspecified() && !ip.IsLoopback() && ip.Zone() == ""
}

// At is the headless service whose pod listens at the address, as outbound
// orders services. Ports that speak HTTP are caught elsewhere.
func At(v *facet.View, pod netip.Addr, number uint16) service.ServedPort {
	claims := headlessClaims(v, pod, number)
	if len(claims) == 0 || !v.Facet.Covers(claims[0].Service) || claims[0].Port.Protocol.IsHTTP() {
		return service.ServedPort{}
	}
	for _, p := range claims[1:] {
		if p.Service != claims[0].Service {
			v.LeaveOut(resource.Reason{Code: resource.ReasonVIPTaken, Service: p.Service.Key, Message: "the pod " + netip.AddrPortFrom(pod,
				number).String() + " of " + p.Service.Key.String() +
				" is called as one of " + claims[0].Service.Key.String() +
				", which comes first; rules for the former have no effect on these connections"})
		}
	}
	return claims[0]
}

// headlessClaims are the ports of headless services for which a pod that can be
// reached at the address listens there, the first in precedence first.
func headlessClaims(v *facet.View, pod netip.Addr, number uint16) []service.ServedPort {
	var claims []service.ServedPort
	for _, network := range flatNetworks(v) {
		for _, i := range v.Reader.At(federation.Place{Network: network, Addresses: []netip.Addr{pod}}).Instances() {
			isTCP := i.Port.Protocol.Transport() == federation.TransportTCP
			if isTCP && i.Number == number && service.IsHeadless(i.Service) && v.Sees(i.Service) &&
				v.Exposes(i.Service, i.Port.Number) && service.Owns(v, i.Service, i.Port.Number) && !service.IsAlias(v, i.Service) {
				claims = append(claims, service.ServedPort{Service: i.Service, Port: i.Port})
			}
		}
	}
	slices.SortStableFunc(claims, func(p, q service.ServedPort) int {
		return cmp.Or(resource.CompareTrueFirst(node.IsPublic(p.Service), node.IsPublic(q.Service)),
			resource.CompareTrueFirst(service.HasShard(p.Service, v.Facet.Cluster), service.HasShard(q.Service, v.Facet.Cluster)),
			p.Service.Key.Compare(q.Service.Key), cmp.Compare(p.Port.Number, q.Port.Number))
	})
	return claims
}

// flatNetworks are those whose addresses the facet's proxies dial directly: their
// own, and those without a gateway.
func flatNetworks(v *facet.View) []federation.NetworkID {
	flat := []federation.NetworkID{v.Network()}
	for n := range v.Reader.Networks() {
		if n.ID != flat[0] && !n.Gated {
			flat = append(flat, n.ID)
		}
	}
	return flat
}
