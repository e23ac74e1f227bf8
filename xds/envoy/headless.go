package envoy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Callers of a headless service dial its pods. Where a port speaks HTTP, the
// listener of all services of that port catches the connection and the route finds
// the service; any other port has a listener at the address of each pod, as with
// Istio. What the listener catches goes to the service's cluster, and from there to
// the address that the caller dialed.

// headless tells that callers of the service choose among its pods.
func headless(s *federation.Service) bool {
	return s.Resolution == federation.Passthrough && !s.MeshExternal
}

// appendPodListeners adds the names of the listeners of a headless service at its
// pods, where the pods listen for the port.
func appendPodListeners(names []string, f node.Facet, p servedPort) []string {
	if !headless(p.service) {
		return names
	}
	for _, group := range p.service.Endpoints {
		name, declared := p.port.DeclaredBy(group.Shard)
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

// isCaptured tells that connections to the address leave the pod, so that they are
// captured.
func isCaptured(ip netip.Addr) bool {
	return !ip.IsUnspecified() && !ip.IsLoopback() && ip.Zone() == ""
}

// headlessAt is the headless service whose pod listens at the address, as ownerAt
// orders services. Ports that speak HTTP are caught elsewhere.
func (b *builder) headlessAt(pod netip.Addr, number uint16) servedPort {
	claims := b.headlessClaims(pod, number)
	if len(claims) == 0 || !b.facet.Covers(claims[0].service) || claims[0].port.Protocol.IsHTTP() {
		return servedPort{}
	}
	for _, p := range claims[1:] {
		if p.service != claims[0].service {
			b.leaveOut(resource.Reason{Code: resource.ReasonVIPTaken, Service: p.service.Key, Message: "the pod " + netip.AddrPortFrom(pod, number).String() + " of " + p.service.Key.String() +
				" is called as one of " + claims[0].service.Key.String() + ", which comes first; rules for the former have no effect on these connections"})
		}
	}
	return claims[0]
}

// headlessClaims are the ports of headless services for which a pod that can be
// reached at the address listens there, the first in precedence first.
func (b *builder) headlessClaims(pod netip.Addr, number uint16) []servedPort {
	var claims []servedPort
	for _, network := range b.flatNetworks() {
		for _, i := range b.reader.InstancesAt(federation.Place{Network: network, Addresses: []netip.Addr{pod}}) {
			isTCP := i.Port.Protocol.Transport() == federation.TransportTCP
			if isTCP && i.Number == number && headless(i.Service) && b.sees(i.Service) && b.owns(i.Service, i.Port.Number) && !b.isAlias(i.Service) {
				claims = append(claims, servedPort{i.Service, i.Port})
			}
		}
	}
	slices.SortStableFunc(claims, func(p, q servedPort) int {
		return cmp.Or(resource.CompareTrueFirst(node.IsPublic(p.service), node.IsPublic(q.service)),
			resource.CompareTrueFirst(hasShard(p.service, b.facet.Cluster), hasShard(q.service, b.facet.Cluster)),
			p.service.Key.Compare(q.service.Key), cmp.Compare(p.port.Number, q.port.Number))
	})
	return claims
}

// flatNetworks are those whose addresses the facet's proxies dial directly: their
// own, and those without a gateway.
func (b *builder) flatNetworks() []federation.NetworkID {
	flat := []federation.NetworkID{b.network()}
	for n := range b.reader.Networks() {
		if n.ID != flat[0] && !n.Gated {
			flat = append(flat, n.ID)
		}
	}
	return flat
}

// callersDialPods tells that a headless service has no addresses but those of its
// pods. A ServiceEntry of the mesh with the resolution NONE may name addresses, and
// these are dialed.
func callersDialPods(s *federation.Service) bool { return headless(s) && hasPods(s) }

// podDomains are the names of the pods of a headless service: POD.HOST.
func podDomains(s *federation.Service) []string {
	host := string(s.Key.Hostname)
	if strings.HasPrefix(host, "*") || !callersDialPods(s) {
		return nil
	}
	return []string{"*." + host}
}

// hasPods tells that a registry of workloads has the service; what ServiceEntries
// alone declare has no names for its instances.
func hasPods(s *federation.Service) bool {
	return slices.ContainsFunc(s.Endpoints, func(g federation.ShardEndpoints) bool { return g.Shard.Provider != federation.External })
}
