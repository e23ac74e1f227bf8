package route

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// withAliases adds the names of the host's service. A name for which there is a
// VirtualService is a host of its own, unless there is one of that name already: then
// the host with the better claim to the name answers it.
func withAliases(v *facet.View, hosts []*Host, h *Host) []*Host {
	hosts = append(hosts, h)
	for _, name := range service.Aliases(v, h.Service) {
		if RuleFor(v, name, h.Number) == nil || isHost(v, hosts, name, h.Number) {
			h.aliases = append(h.aliases, name)
			continue
		}
		hosts = append(hosts, &Host{Host: name, Number: h.Number, target: h.Service})
	}
	return hosts
}

// isHost reports whether the name is among the hosts, or will be as that of a service which
// has the port: one of another namespace than the service that is the other name.
func isHost(v *facet.View, hosts []*Host, name federation.Hostname, number uint16) bool {
	owner, _ := service.FirstOwner(v.Reader.ByHostname(name), number, v.Facet.OwnNamespace(), v.Facet.Covers)
	return owner.Service != nil && service.MayBeHTTP(v, owner.Port) && !service.IsAlias(v, owner.Service) ||
		slices.ContainsFunc(hosts, func(h *Host) bool { return h.Host == name && h.Number == number })
}

// Host is a virtual host in the making.
type Host struct {
	Host    federation.Hostname
	Number  uint16
	Service *federation.Service // nil: only a VirtualService names the host
	target  *federation.Service // of which the host is another name, where a VirtualService names that
	aliases []federation.Hostname
	Domains []string
	byPort  bool                 // requests to one port are for it, not those of an explicit proxy
	RuledBy federation.ObjectKey // the VirtualService of which its routes are; zero: none
}

// ServiceKey is empty where the host is not a service.
func (h *Host) ServiceKey() federation.ServiceKey {
	if h.Service == nil {
		return federation.ServiceKey{}
	}
	return h.Service.Key
}

// Name is that of the virtual host.
func (h *Host) Name() string { return fmt.Sprintf("%s:%d", h.Host, h.Number) }

// httpHosts lists the ports that speak HTTP, or may, among the numbers of services, given in the
// order of keys, that own their cluster's name.
func httpHosts(v *facet.View, services iter.Seq[*federation.Service], numbers func([]*federation.Service) []uint16) []*Host {
	var hosts []*Host
	for group := range service.ByHostname(services) {
		for _, number := range numbers(group) {
			owner, losers := service.FirstOwner(group, number, v.Facet.OwnNamespace(), v.Facet.Covers)
			for _, s := range losers {
				if p, _ := service.TCPPort(s, number); service.MayBeHTTP(v, p) {
					v.LeaveOut(service.Taken(v, owner, s))
				}
			}
			if owner.Service != nil && v.Exposes(owner.Service, number) && service.MayBeHTTP(v, owner.Port) && !service.IsAlias(v, owner.Service) {
				hosts = withAliases(v, hosts, &Host{Host: owner.Service.Key.Hostname, Number: number, Service: owner.Service})
			}
		}
	}
	return hosts
}

// withRuledHosts adds the hosts that only VirtualServices name.
func withRuledHosts(v *facet.View, hosts []*Host, number uint16) []*Host {
	if number != RuledPort {
		return hosts
	}
	for _, host := range RuledHosts(v, hosts) {
		hosts = append(hosts, &Host{Host: host, Number: number})
	}
	return hosts
}

// RuledPort is the port on which sidecars serve hosts that are not services.
const RuledPort = 80

// RuledHosts are the hosts, sorted, that VirtualServices name and that are
// not services: sidecars serve them on port 80. A wildcard counts as no service
// where none of the known hosts is covered by it.
func RuledHosts(v *facet.View, known []*Host) []federation.Hostname {
	names := make(map[federation.Hostname]bool, len(known))
	for _, h := range known {
		names[h.Host] = true
	}
	found := map[federation.Hostname]bool{}
	v.Reader.Objects().Select(federation.VirtualServiceKind, func(o *federation.Object) bool {
		before := len(found)
		for _, name := range o.Names {
			host := federation.Hostname(name)
			if !names[host] && !found[host] && resource.IsDomain(name) && hasRule(v, o, host) &&
				v.Facet.Exposes(o.Key.Namespace, host, RuledPort) && !isService(v, host, known) {
				found[host] = true
			}
		}
		return len(found) > before
	})
	return slices.Sorted(maps.Keys(found))
}

// isService reports whether the host, which is none of the known ones, is a service, or
// a wildcard for known hosts.
func isService(v *facet.View, host federation.Hostname, known []*Host) bool {
	if strings.HasPrefix(string(host), "*") &&
		slices.ContainsFunc(known, func(h *Host) bool { return resource.Covers(string(host), string(h.Host)) }) {
		return true
	}
	return slices.ContainsFunc(v.Reader.ByHostname(host), v.Sees)
}
