package federation

import "strings"

// DefaultDomain ends the names of services within a cluster.
const DefaultDomain = "cluster.local"

// ResolveHost returns the full name of a host as an object of the namespace
// names it: NAME means the service of that name in the object's own
// namespace. A name with a dot, and the wildcard "*", are taken as they are.
func ResolveHost(host, namespace string) Hostname {
	return ResolveHostIn(DefaultDomain, host, namespace)
}

// ResolveHostIn is ResolveHost where names of services end in another domain.
func ResolveHostIn(domain, host, namespace string) Hostname {
	host = strings.ToLower(host)
	if host == "" || host == "*" || namespace == "" || strings.Contains(host, ".") {
		return Hostname(host)
	}
	return Hostname(host + "." + namespace + ".svc." + domain)
}

// Namespace is that of the service of Kubernetes that the name says: NAME.NAMESPACE.svc and a domain. Other names, such
// as those of ServiceEntries, say none.
func (h Hostname) Namespace() (namespace string, named bool) {
	_, rest, _ := strings.Cut(string(h), ".")
	namespace, rest, _ = strings.Cut(rest, ".")
	return namespace, namespace != "" && strings.HasPrefix(rest, "svc.")
}
