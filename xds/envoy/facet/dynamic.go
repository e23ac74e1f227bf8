package facet

import (
	"slices"

	"isthmus.dev/isthmus/federation"
)

// ResolvesNames reports whether requests to the port, or to any port if it is 0, may be for a
// service of which the proxy resolves the names that callers ask for. It looks at the entries of
// such services, which are few, and not at all services of the port: each listener of the port asks.
func ResolvesNames(v *View, number uint16) bool {
	for o := range v.Reader.Objects().Named(federation.ServiceEntryKind, federation.DynamicDNSEntries) {
		resolved := slices.ContainsFunc(o.Names, func(host string) bool {
			s, found := v.Reader.Spec(federation.ServiceKey{Hostname: federation.Hostname(host), Namespace: o.Key.Namespace})
			return found && s.IsDynamic() && (number == 0 || hasTCPPort(s, number)) && v.Sees(s)
		})
		if resolved {
			return true
		}
	}
	return false
}

func hasTCPPort(s *federation.Service, number uint16) bool {
	p, has := s.Port(number)
	return has && p.Protocol.Transport() == federation.TransportTCP
}
