package service

import (
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
)

// A service may have other names: its registry knows them, or an ExternalName names
// the service. Requests to these names are requests to the service, with its
// endpoints, its mutual TLS and its rules. What is not HTTP needs no more than
// the address for which the name stands: the service's own.

// aliasOf is the hostname of which an ExternalName is another name, as the
// facet's proxies see it. Clients of gRPC resolve the name themselves.
func aliasOf(v *facet.View, s *federation.Service) (federation.Hostname, bool) {
	if s.ExternalName == "" || v.Facet.GRPC {
		return "", false
	}
	return v.Reader.AliasTarget(s, v.Sees)
}

// IsAlias reports whether the service is another name of one that the facet's proxies have.
func IsAlias(v *facet.View, s *federation.Service) bool {
	_, is := aliasOf(v, s)
	return is
}

// SeenAt are the services of the hostname that the facet's proxies see.
func SeenAt(v *facet.View, host federation.Hostname) []*federation.Service {
	return slices.DeleteFunc(slices.Clone(v.Reader.ByHostname(host)), func(s *federation.Service) bool { return !v.Sees(s) })
}

// AliasAmong is what the hostname is another name of, and the service that says so: its owner,
// or any of its services where none has the port. nil: none does.
func AliasAmong(v *facet.View, host federation.Hostname, owner ServedPort) (federation.Hostname, *federation.Service) {
	services := []*federation.Service{owner.Service}
	if owner.Service == nil {
		services = SeenAt(v, host)
	}
	for _, s := range services {
		if to, is := aliasOf(v, s); is {
			return to, s
		}
	}
	return "", nil
}

// Aliases are the other names of the service. A service that has such a name as its
// hostname comes first.
func Aliases(v *facet.View, s *federation.Service) []federation.Hostname {
	names := slices.DeleteFunc(slices.Clone(s.Aliases), func(name federation.Hostname) bool { return len(SeenAt(v, name)) > 0 })
	for _, alias := range v.Reader.AliasesOf(s.Key.Hostname, v.Sees) {
		if host, _ := aliasOf(v, alias); host == s.Key.Hostname {
			names = append(names, alias.Key.Hostname)
		}
	}
	return names
}
