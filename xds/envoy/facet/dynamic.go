package facet

import (
	"slices"

	"isthmus.dev/isthmus/federation"
)

// ResolvesNames reports whether requests to the port, or to any port if it is 0, may be for a
// service of which the proxy resolves the names that callers ask for.
func ResolvesNames(v *View, number uint16) bool {
	if number != 0 {
		return len(v.Reader.SelectOnPort(number, func(s *federation.Service) bool { return isDynamic(s) && v.Sees(s) })) > 0
	}
	for o := range v.Reader.Objects().Named(serviceEntryKind, federation.DynamicDNSEntries) {
		seen := slices.ContainsFunc(o.Names, func(name string) bool {
			s, found := v.Reader.Spec(federation.ServiceKey{Hostname: federation.Hostname(name), Namespace: o.Key.Namespace})
			return found && isDynamic(s) && v.Sees(s)
		})
		if seen {
			return true
		}
	}
	return false
}

func isDynamic(s *federation.Service) bool { return s.Resolution == federation.DynamicDNS }
