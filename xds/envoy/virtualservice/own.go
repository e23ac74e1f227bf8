package virtualservice

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// ownConnectionsName finds the VirtualServices with routes for TLS or TCP that
// not every proxy has: those that are not exported to everyone or that look at
// the source.
const ownConnectionsName = "connections:own"

// HasOwnConnections reports whether proxies of the namespace may have routes for
// connections that others do not have.
func HasOwnConnections(namespace string, r *federation.Reader) bool {
	for o := range r.Objects().Named(Kind, ownConnectionsName) {
		if spec, ok := o.Spec.(*networking.VirtualService); ok && federation.VisibleFrom(spec.GetExportTo(), o.Key.Namespace, namespace) {
			return true
		}
	}
	return false
}
