package federation

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// WorkloadKey names a workload within its registry.
type WorkloadKey struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func (k WorkloadKey) String() string { return k.Namespace + "/" + k.Name }

// Probe is a health check that the platform sends to a workload.
type Probe struct {
	Kind      string `json:"kind"`              // readiness, liveness, startup
	Container string `json:"container"`         //
	Protocol  string `json:"protocol"`          // HTTP, HTTPS, TCP, GRPC
	Port      uint16 `json:"port"`              //
	Path      string `json:"path,omitempty"`    // HTTP only
	Service   string `json:"service,omitempty"` // GRPC only
}

// Workload is something with addresses that runs in a cluster: a pod, a Consul
// node's service instance, a virtual machine.
type Workload struct {
	Addresses      []netip.Addr      `json:"addresses"`
	Network        NetworkID         `json:"network,omitempty"`
	Locality       Locality          `json:"locality,omitzero"`
	Labels         map[string]string `json:"labels,omitempty"`
	ServiceAccount string            `json:"serviceAccount,omitempty"`
	// What follows is for selectors, which make the workload an endpoint.
	Host    Address        `json:"host,omitzero"`    // where it listens, if that is a DNS name or a socket; else at the first of Addresses
	Ports   []EndpointPort `json:"ports,omitempty"`  // under the names of service ports
	Weight  uint32         `json:"weight,omitempty"` // 0 counts as 1
	TLSMode string         `json:"tlsMode,omitempty"`
	Health  Health         `json:"health,omitempty"` // empty counts as HEALTHY
	// Probes are sent by the platform.
	Probes []Probe `json:"probes,omitempty"`
	// ManagementPorts are ports for the platform only; generated configuration
	// leaves their traffic out of routing (seeds 1.6).
	ManagementPorts []Port `json:"managementPorts,omitempty"`
}

// Equal compares all fields.
func (w *Workload) Equal(o *Workload) bool {
	return slices.Equal(w.Addresses, o.Addresses) && w.Network == o.Network && w.Locality == o.Locality &&
		maps.Equal(w.Labels, o.Labels) && w.ServiceAccount == o.ServiceAccount && w.Host == o.Host &&
		slices.Equal(w.Ports, o.Ports) && w.Weight == o.Weight && w.TLSMode == o.TLSMode && w.Health == o.Health &&
		slices.Equal(w.Probes, o.Probes) && slices.Equal(w.ManagementPorts, o.ManagementPorts)
}

// AddressKey is an address within a network: the same address may exist once in
// every network.
type AddressKey struct {
	Network NetworkID
	Addr    netip.Addr
}

// Compare orders by network, then address.
func (k AddressKey) Compare(o AddressKey) int {
	return cmp.Or(cmp.Compare(k.Network, o.Network), k.Addr.Compare(o.Addr))
}
