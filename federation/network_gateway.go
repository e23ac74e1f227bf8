package federation

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// add makes the address an entry, unless the address policy refuses it.
func (m *networkMaker) add(g Gateway, ip netip.Addr, port uint16) {
	at := netip.AddrPortFrom(ip.Unmap(), port)
	if why := m.read.policy().Refuse(at.Addr(), port); why != "" {
		m.refuse(at.String(), why, g.Cause)
		return
	}
	if m.byAddress[at] {
		m.refuse(at.String(), "was named before", g.Cause)
		return
	}
	m.byAddress[at] = true
	g.Address, g.Verdicts = at, m.read.verdicts(at)
	m.network.Gateways = append(m.network.Gateways, g)
}

func (m *networkMaker) refuse(what, why string, cause GatewayCause) {
	m.network.Refused = append(m.network.Refused, RefusedGateway{Gateway: what, Why: why, Cause: cause})
}

// byName adds the addresses to which the name resolves now.
func (m *networkMaker) byName(g Gateway, name Hostname, port uint16) {
	if why := m.read.policy().RefuseHost(string(name)); why != "" {
		m.refuse(string(name), why, g.Cause)
		return
	}
	addresses := m.read.addresses(name)
	if len(addresses) == 0 {
		m.refuse(string(name), "has no address: it was not resolved yet", g.Cause)
	}
	for _, ip := range addresses {
		m.add(g, ip, port)
	}
}

// byService adds the addresses from outside of a service in the clusters of this
// network; where a cluster names none, the service's endpoints in this network.
func (m *networkMaker) byService(g Gateway, spec NetworkGateway) {
	svc, why := m.serviceNamed(spec.Service.Hostname, spec.Service.Namespace)
	if svc == nil {
		m.refuse(string(spec.Service.Hostname), why, g.Cause)
		return
	}
	found := false
	for _, group := range svc.Endpoints {
		entry, shard := g, svc.Shards.Of(group.Shard)
		port := cmp.Or(spec.Port, shard.gatewayPort())
		if len(shard.External) > 0 && m.read.home(group.Shard.Cluster) == m.network.ID {
			if entry.Locality == (Locality{}) {
				entry.Locality = svc.commonLocality(group.Shard)
			}
			m.external(entry, shard, port)
			found = true
			continue
		}
		found = m.endpoints(g, svc, group, port) || found
	}
	if !found {
		m.refuse(svc.Key.String(), "has neither an address from outside nor an endpoint in this network", g.Cause)
	}
}

func (m *networkMaker) serviceNamed(host Hostname, namespace string) (*Service, string) {
	if namespace != "" {
		svc, ok := m.read.service(ServiceKey{Hostname: host, Namespace: namespace})
		if !ok {
			return nil, fmt.Sprintf("is not a service in namespace %q", namespace)
		}
		return svc, ""
	}
	found := m.read.byHostname(host)
	switch len(found) {
	case 0:
		return nil, "is not a service"
	case 1:
		return found[0], ""
	}
	return nil, "is a service in several namespaces: name one of them"
}

// external adds the addresses at which a service is reached from outside, as its
// cluster reports them. The VIP of a service is never one, whatever its source.
func (m *networkMaker) external(g Gateway, shard *Shard, port uint16) {
	for _, address := range shard.External {
		if name, ok := address.Host(); ok {
			m.byName(g, Hostname(name), port)
			continue
		}
		ip, ok := address.IP()
		if !ok {
			continue
		}
		if owner, taken := m.read.ownerAt(ip); taken {
			m.refuse(ip.String(), "is the VIP of service "+owner.String(), g.Cause)
			continue
		}
		m.add(g, ip, port)
	}
}

// endpoints adds those endpoints of the group that are in this network.
func (m *networkMaker) endpoints(g Gateway, svc *Service, group ShardEndpoints, port uint16) (found bool) {
	served, ok := svc.Port(port)
	if !ok {
		return false
	}
	name, declares := served.DeclaredBy(group.Shard)
	for i := range group.Endpoints {
		e := &group.Endpoints[i]
		ip, isIP := e.Address.IP()
		number, serves := e.Port(name)
		if !declares || !isIP || !serves || e.Network != m.network.ID || e.Health == Unhealthy {
			continue
		}
		entry := g
		if entry.Locality == (Locality{}) {
			entry.Locality = e.Locality
		}
		m.add(entry, ip, number)
		found = true
	}
	return found
}

// commonLocality is what the localities of the shard's endpoints have in common.
func (s *Service) commonLocality(shard ShardKey) Locality {
	var common Locality
	first := true
	for _, group := range s.Endpoints {
		if group.Shard != shard {
			continue
		}
		for i := range group.Endpoints {
			l := group.Endpoints[i].Locality
			switch {
			case first:
				common, first = l, false
			case l.Region != common.Region:
				return Locality{}
			case l.Zone != common.Zone:
				common = Locality{Region: common.Region}
			case l.SubZone != common.SubZone:
				common.SubZone = ""
			}
		}
	}
	return common
}

// ParseLocality reads REGION/ZONE/SUBZONE. What is missing is empty; what follows belongs to the sub-zone.
func ParseLocality(text string) Locality {
	parts := append(strings.SplitN(text, "/", 3), "", "")
	return Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

func normalAddresses(in []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, len(in))
	for i, ip := range in {
		out[i] = ip.Unmap()
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
