package envoy

import (
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

// aliases are the other names of the service.
func (b *builder) aliases(s *federation.Service) []federation.Hostname {
	names := append([]federation.Hostname(nil), s.Aliases...)
	for _, alias := range b.reader.AliasesOf(s.Key.Hostname, b.sees) {
		if host, _ := b.standsFor(alias); host == s.Key.Hostname {
			names = append(names, alias.Key.Hostname)
		}
	}
	return names
}

// withAliases adds the names of the host's service. A name for which there is a
// VirtualService is a host of its own.
func (b *builder) withAliases(hosts []*httpHost, h *httpHost) []*httpHost {
	hosts = append(hosts, h)
	for _, name := range b.aliases(h.service) {
		if b.ruleFor(name, h.number) == nil {
			h.aliases = append(h.aliases, name)
			continue
		}
		hosts = append(hosts, &httpHost{host: name, number: h.number, target: h.service})
	}
	return hosts
}
