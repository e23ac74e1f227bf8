package virtualservice

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
)

// ownConnectionsName finds the VirtualServices with routes for TLS or TCP that
// not every proxy has: those that are not exported to everyone or that look at
// the source. defaultConnectionsName finds those that do not say where they are exported to.
const (
	ownConnectionsName     = "connections:own"
	defaultConnectionsName = "connections:default"
)

// HasOwnConnections reports whether proxies of the namespace may have routes for
// connections that others do not have.
func HasOwnConnections(namespace string, r *federation.Reader) bool {
	names := []string{ownConnectionsName}
	if !federation.Everywhere(r.Mesh().ExportDefaults().VirtualServices) {
		names = append(names, defaultConnectionsName)
	}
	for _, name := range names {
		for o := range r.Objects().Named(federation.VirtualServiceKind, name) {
			if spec, ok := o.Spec.(*networking.VirtualService); ok && VisibleFrom(namespace, o, spec, r) {
				return true
			}
		}
	}
	return false
}

// VisibleFrom reports whether proxies of the namespace have the VirtualService; none: those of every
// namespace.
func VisibleFrom(namespace string, o *federation.Object, spec *networking.VirtualService, r *federation.Reader) bool {
	exportTo := spec.GetExportTo()
	if len(exportTo) == 0 { // else the settings are not read
		exportTo = r.Mesh().ExportDefaults().VirtualServices
	}
	return federation.VisibleFrom(exportTo, o.Key.Namespace, namespace)
}
