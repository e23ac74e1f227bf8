// Package virtualservice translates fields of VirtualServices into Envoy's terms, and
// decides who sees a VirtualService.
package virtualservice

import (
	"slices"
)

// ForMesh reports whether a list of gateways means sidecars.
func ForMesh(gateways []string) bool {
	return len(gateways) == 0 || slices.Contains(gateways, MeshGateway)
}

// MeshGateway is the name by which a VirtualService means sidecars.
const MeshGateway = "mesh"
