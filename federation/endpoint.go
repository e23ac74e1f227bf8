package federation

import (
	"cmp"
	"maps"
	"slices"
)

// Health is what a registry reports about an endpoint.
type Health string

// HEALTHY takes traffic, DRAINING only where nothing healthy is left, UNHEALTHY
// none.
const (
	Healthy   Health = "HEALTHY"
	Draining  Health = "DRAINING"
	Unhealthy Health = "UNHEALTHY"
)

func (h Health) rank() int {
	switch h {
	case Healthy:
		return 0
	case Draining:
		return 1
	}
	return 2
}

// EndpointPort is a port on which an endpoint listens, under the name that its
// own registry's service port has.
type EndpointPort struct {
	Name   string `json:"name,omitempty"`
	Number uint16 `json:"number"`
}

// Endpoint is one workload's address for one service (IstioEndpoint in seeds
// 1.3, with all its ports). It is never changed after it was published.
type Endpoint struct {
	Address        Address           `json:"address"`
	Ports          []EndpointPort    `json:"ports,omitempty"`
	Network        NetworkID         `json:"network,omitempty"` // filled in by the registry: own label, else the cluster's; empty is DefaultNetwork
	Locality       Locality          `json:"locality,omitzero"`
	Weight         uint32            `json:"weight,omitempty"` // load-balancing weight; 0 counts as 1
	Health         Health            `json:"health"`
	Labels         map[string]string `json:"labels,omitempty"`
	ServiceAccount string            `json:"serviceAccount,omitempty"`
	TLSMode        string            `json:"tlsMode,omitempty"`  // "istio": takes mutual TLS; "disabled": plain text
	Workload       string            `json:"workload,omitempty"` // NAMESPACE/NAME of the workload, where known
	Hostname       string            `json:"hostname,omitempty"` // of a pod behind a headless service
	UID            string            `json:"uid,omitempty"`
	Cluster        ClusterID         `json:"cluster,omitempty"` // where it runs, if that is not the cluster of its shard
}

// Port returns the number under which the endpoint serves the named port.
func (e *Endpoint) Port(name string) (uint16, bool) {
	for _, p := range e.Ports {
		if p.Name == name {
			return p.Number, true
		}
	}
	return 0, false
}

// LoadBalancingWeight is Weight with its default of 1.
func (e *Endpoint) LoadBalancingWeight() uint32 { return max(e.Weight, 1) }

// Equal compares all fields.
func (e *Endpoint) Equal(o *Endpoint) bool {
	return e.Address == o.Address && slices.Equal(e.Ports, o.Ports) && e.Network == o.Network &&
		e.Locality == o.Locality && e.Weight == o.Weight && e.Health == o.Health &&
		maps.Equal(e.Labels, o.Labels) && e.ServiceAccount == o.ServiceAccount && e.TLSMode == o.TLSMode &&
		e.Workload == o.Workload && e.Hostname == o.Hostname && e.UID == o.UID && e.Cluster == o.Cluster
}

// compareEndpoints is a total order over what tells endpoints of one service
// apart; the better health and the lower UID come first among duplicates.
func compareEndpoints(a, b Endpoint) int {
	return cmp.Or(compareSockets(a, b), cmp.Compare(a.Health.rank(), b.Health.rank()),
		cmp.Compare(a.UID, b.UID), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Weight, b.Weight), a.Locality.Compare(b.Locality))
}

// compareSockets is 0 for two entries that name the same sockets.
func compareSockets(a, b Endpoint) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Network, b.Network),
		slices.CompareFunc(a.Ports, b.Ports, func(p, q EndpointPort) int {
			return cmp.Or(cmp.Compare(p.Name, q.Name), cmp.Compare(p.Number, q.Number))
		}))
}

// NormalEndpoints sorts, fills in defaults and keeps the best of entries that
// name the same sockets, so that equal contents are equal slices. Where there is
// nothing to do it returns the same slice.
func NormalEndpoints(in []Endpoint) []Endpoint {
	if areNormal(in) {
		return in
	}
	out := slices.Clone(in)
	for i := range out {
		out[i].Network = cmp.Or(out[i].Network, DefaultNetwork)
		out[i].Health = cmp.Or(out[i].Health, Healthy)
	}
	if !slices.IsSortedFunc(out, compareEndpoints) {
		slices.SortStableFunc(out, compareEndpoints)
	}
	return slices.CompactFunc(out, func(a, b Endpoint) bool { return compareSockets(a, b) == 0 })
}

func areNormal(in []Endpoint) bool {
	for i := range in {
		if in[i].Network == "" || in[i].Health == "" || i > 0 && (compareSockets(in[i-1], in[i]) == 0 || compareEndpoints(in[i-1], in[i]) > 0) {
			return false
		}
	}
	return true
}
