package gatewayapi

import (
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// reference is how an object names a core one that it uses.
type reference struct {
	by         federation.ObjectKey
	kind, name string
	namespace  *gateway.Namespace // nil or empty: that of the object which refers
	field      string
	otherwise  string // what happens if it cannot be used
}

// from is the namespace of what is named.
func (f reference) from() string { return namespaceOf(f.by, f.namespace) }

// permitted reports whether the object may use what it names: all of its own namespace, and
// what a ReferenceGrant of another one lets it use.
func (f reference) permitted(r *federation.Reader) bool {
	return f.from() == f.by.Namespace || permitted(r, f.by, f.from(), "", f.kind, f.name)
}

// refuse adds that the object may not.
func (f reference) refuse(why *faults) {
	why.add(resolved, string(gateway.ListenerReasonRefNotPermitted), f.field,
		"no ReferenceGrant of namespace %s lets a %s of namespace %s use the %s %s; %s", f.from(), f.by.Kind,
		f.by.Namespace, f.kind, f.name, f.otherwise)
}

// ofSecret reports whether proxies of the Gateway may have the Secret that is named.
func (f reference) ofSecret(r *federation.Reader, of federation.ObjectKey, why *faults) bool {
	switch {
	case !f.permitted(r):
		f.refuse(why)
		return false
	case f.from() != of.Namespace && of.Cluster == "":
		why.add(resolved, string(gateway.ListenerReasonRefNotPermitted), f.field,
			"a Gateway for all clusters cannot use Secrets of another namespace; %s: read the Gateway from its cluster with the scope CLUSTER",
			f.otherwise)
		return false
	}
	return true
}

// mayUseSecret reports whether the listener of the Gateway may use a Secret. All Secrets of a listener are of
// one namespace; several is the reason that others are refused.
func (l *listener) mayUseSecret(r *federation.Reader, of federation.ObjectKey, use reference, why *faults, several string) bool {
	from := use.from()
	switch {
	case !use.ofSecret(r, of, why):
		return false
	case len(l.names) > 0 && l.from != from:
		why.add(resolved, several, use.field, "the Secrets of one listener must be of one namespace; %s", use.otherwise)
		return false
	}
	l.from = from
	return true
}
