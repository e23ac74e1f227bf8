package envoy

import (
	"slices"

	"isthmus.dev/isthmus/federation"
)

// A service may have other names: its registry knows them, or an ExternalName names
// the service. Requests to these names are requests to the service, with its
// endpoints, its mutual TLS and its rules. What is not HTTP needs no more than
// the address for which the name stands: the service's own.

// standsFor is the hostname of which an ExternalName is another name, as the
// facet's proxies see it. Clients of gRPC resolve the name themselves.
func (b *builder) standsFor(s *federation.Service) (federation.Hostname, bool) {
	if s.ExternalName == "" || b.facet.GRPC {
		return "", false
	}
	return b.reader.AliasTarget(s, b.sees)
}

func (b *builder) isAlias(s *federation.Service) bool {
	_, is := b.standsFor(s)
	return is
}

// seenAt are the services of the hostname that the facet's proxies see.
func (b *builder) seenAt(host federation.Hostname) []*federation.Service {
	return slices.DeleteFunc(slices.Clone(b.reader.ByHostname(host)), func(s *federation.Service) bool { return !b.sees(s) })
}

// aliasAmong is what the hostname is another name of: as its owner has it, or any of
// its services where none has the port.
func (b *builder) aliasAmong(host federation.Hostname, owner servedPort) (federation.Hostname, bool) {
	if owner.service != nil {
		return b.standsFor(owner.service)
	}
	for _, s := range b.seenAt(host) {
		if to, is := b.standsFor(s); is {
			return to, true
		}
	}
	return "", false
}

// aliases are the other names of the service. A service that has such a name as its
// hostname comes first.
func (b *builder) aliases(s *federation.Service) []federation.Hostname {
	names := slices.DeleteFunc(slices.Clone(s.Aliases), func(name federation.Hostname) bool { return len(b.seenAt(name)) > 0 })
	for _, alias := range b.reader.AliasesOf(s.Key.Hostname, b.sees) {
		if host, _ := b.standsFor(alias); host == s.Key.Hostname {
			names = append(names, alias.Key.Hostname)
		}
	}
	return names
}

// withAliases adds the names of the host's service. A name for which there is a
// VirtualService is a host of its own, unless there is one of that name already: then
// whoever has the better claim to the name answers it.
func (b *builder) withAliases(hosts []*httpHost, h *httpHost) []*httpHost {
	hosts = append(hosts, h)
	for _, name := range b.aliases(h.service) {
		if b.ruleFor(name, h.number) == nil || b.isHost(hosts, name, h.number) {
			h.aliases = append(h.aliases, name)
			continue
		}
		hosts = append(hosts, &httpHost{host: name, number: h.number, target: h.service})
	}
	return hosts
}

// isHost tells that the name is among the hosts, or will be as that of a service which
// has the port: one of another namespace than the service that is the other name.
func (b *builder) isHost(hosts []*httpHost, name federation.Hostname, number uint16) bool {
	owner, _ := firstOwner(b.reader.ByHostname(name), number, b.facet.OwnNamespace(), b.facet.Covers)
	return owner.service != nil && owner.port.Protocol.IsHTTP() && !b.isAlias(owner.service) ||
		slices.ContainsFunc(hosts, func(h *httpHost) bool { return h.host == name && h.number == number })
}
