package model

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// Endpoint is an endpoint with the source that it comes from.
type Endpoint struct {
	Source federation.ShardKey
	Of     *federation.Endpoint

	service     string
	rank, index int
}

// Key orders endpoints by service, source and place.
func (e Endpoint) Key() string { return fmt.Sprintf("%s\x00%06d\x00%08d", e.service, e.rank, e.index) }

func (e Endpoint) Address() string    { return e.Of.Address.String() }
func (e Endpoint) ClusterID() string  { return string(e.Source.Cluster) }
func (e Endpoint) Provider() Provider { return provider(e.Source.Provider) }
func (e Endpoint) Network() string    { return string(e.Of.Network) }
func (e Endpoint) Weight() int        { return int(e.Of.LoadBalancingWeight()) }
func (e Endpoint) Health() Health     { return Health(e.Of.Health) }
func (e Endpoint) Labels() []Label    { return labels(e.Of.Labels) }

// Locality says where it runs.
func (e Endpoint) Locality() Locality {
	return Locality{Region: e.Of.Locality.Region, Zone: e.Of.Locality.Zone, SubZone: e.Of.Locality.SubZone}
}

// Ports returns the ports at its address.
func (e Endpoint) Ports() []EndpointPort {
	all := make([]EndpointPort, len(e.Of.Ports))
	for i, port := range e.Of.Ports {
		all[i] = EndpointPort{Name: port.Name, Number: int(port.Number)}
	}
	return all
}

func (e Endpoint) ServiceAccount() *string { return given(e.Of.ServiceAccount) }
func (e Endpoint) Workload() *string       { return given(e.Of.Workload) }

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
