package model

import (
	"cmp"
	"encoding/binary"

	"isthmus.dev/isthmus/federation"
)

// Endpoint is an endpoint with the source that it comes from.
type Endpoint struct {
	Source federation.ShardKey
	Of     *federation.Endpoint

	service federation.ServiceKey
}

// IsNode marks an endpoint as a Node of the schema.
func (Endpoint) IsNode() {}

// ID makes the opaque ID.
func (e Endpoint) ID() string { return ID(KindEndpoint, e.WideKey()) }

// ServiceKey is that of its service.
func (e Endpoint) ServiceKey() federation.ServiceKey { return e.service }

// Key orders the endpoints of a service by source, address, network and ports,
// which is what tells them apart. It does not depend on which others there are.
func (e Endpoint) Key() string {
	key := []byte(string(e.Source.Cluster) + nul + string(e.Source.Provider) + nul)
	key = appendAddress(key, e.Of.Address)
	key = append(append(key, e.Of.Network...), 0)
	for _, port := range e.Of.Ports {
		key = append(append(append(key, 1), port.Name...), 0)
		key = binary.BigEndian.AppendUint16(key, port.Number)
	}
	return string(key)
}

// WideKey orders the endpoints of many services by service, then like Key.
// ServiceKey reads the service out of it.
func (e Endpoint) WideKey() string {
	return KeyOfService(e.service) + nul + e.Key()
}

// appendAddress writes addresses so that their bytes have the order of
// federation.Address.Compare.
func appendAddress(key []byte, address federation.Address) []byte {
	if ip, ok := address.IP(); ok {
		return append(append(key, '0', byte(ip.BitLen())), ip.AsSlice()...)
	}
	if host, ok := address.Host(); ok {
		return append(append(append(key, '1'), host...), 0)
	}
	path, _ := address.Unix()
	return append(append(append(key, '2'), path...), 0)
}

// Address is an IP address, a hostname or the path of a unix socket.
func (e Endpoint) Address() string { return e.Of.Address.String() }

// ClusterID is the cluster that it runs in.
func (e Endpoint) ClusterID() string { return string(cmp.Or(e.Of.Cluster, e.Source.Cluster)) }

// Provider is the kind of the source that it comes from.
func (e Endpoint) Provider() Provider { return provider(e.Source.Provider) }

// NetworkID is where it is reached.
func (e Endpoint) NetworkID() string { return string(e.Of.Network) }

// Weight is its share of the requests, beside those of the others.
func (e Endpoint) Weight() float64 { return float64(e.Of.LoadBalancingWeight()) }

// Health is its health: whether requests are sent to it.
func (e Endpoint) Health() Health { return Health(e.Of.Health) }

// Labels are in the order of their keys.
func (e Endpoint) Labels() []Label { return labels(e.Of.Labels) }

// Locality says where it runs.
func (e Endpoint) Locality() Locality { return locality(e.Of.Locality) }

// Ports returns the ports at its address.
func (e Endpoint) Ports() []EndpointPort {
	all := make([]EndpointPort, len(e.Of.Ports))
	for i, port := range e.Of.Ports {
		all[i] = EndpointPort{Name: port.Name, Number: int(port.Number)}
	}
	return all
}

// ServiceAccount is nil where it is unknown.
func (e Endpoint) ServiceAccount() *string { return nonEmpty(e.Of.ServiceAccount) }

// Workload is nil where it is unknown.
func (e Endpoint) Workload() *string { return nonEmpty(e.Of.Workload) }

func locality(of federation.Locality) Locality {
	return Locality{Region: nonEmpty(of.Region), Zone: nonEmpty(of.Zone), SubZone: nonEmpty(of.SubZone)}
}

func nonEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
