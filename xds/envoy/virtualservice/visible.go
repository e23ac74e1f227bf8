// Package virtualservice has what the fields of VirtualServices are in terms of Envoy,
// and who sees such an object.
package virtualservice

import (
	"slices"

	"isthmus.dev/isthmus/federation"
)

// VisibleFrom tells that an object of the namespace own, with that exportTo, is
// seen from another namespace; the empty one stands for any.
func VisibleFrom(exportTo []string, own, from string) bool {
	return len(exportTo) == 0 || slices.ContainsFunc(exportTo, func(to string) bool {
		return to == "*" || from != "" && (to == from || to == "." && own == from)
	})
}

// Older orders objects by age, the oldest first.
func Older(a, b *federation.Object) int { return a.CompareAge(b) }

// ForMesh tells that a list of gateways means sidecars.
func ForMesh(gateways []string) bool {
	return len(gateways) == 0 || slices.Contains(gateways, MeshGateway)
}

// MeshGateway is the name by which a VirtualService means sidecars.
const MeshGateway = "mesh"

// Kind is the kind of VirtualServices.
var Kind = federation.Kind{Group: "networking.istio.io", Name: "VirtualService"}
