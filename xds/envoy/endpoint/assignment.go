// Package endpoint makes the endpoints of destinations: those that proxies reach
// themselves, and gateways for those of other networks, with their weights and
// priorities.
package endpoint

import (
	"fmt"
	"math"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

// Assignment builds the endpoints of a service port: those of all clusters that
// declare the port, or the gateways of their networks, each address and port
// once, one group for each locality.
func Assignment(v *facet.View, name string) proto.Message {
	p, ok := destination.Of(v, name)
	if !ok || !p.EDS() || !service.HasPlace(v.Facet, p.Service, v.Reader) {
		return nil
	}
	p.Service, _ = v.Reader.Endpoints(p.Service.Key)
	offers := slices.DeleteFunc(Offers(v, p), func(o Offer) bool {
		host, isName := o.Endpoint.Address.Host()
		if isName {
			LeaveOutEndpoint(v, o, resource.ReasonHostname,
				fmt.Sprintf("%s is a DNS name, but the service's resolution is %s: give the endpoint an IP address or the service a DNS resolution",
					host, p.Service.Resolution))
		}
		return isName
	})
	h := SplitHorizon(v, p, KeepClusterLocal(v, p, offers))
	if len(h.entries) > 0 {
		v.Reader.Accounts(p.Service.Key) // what a gateway's peers are depends on them
	}
	return AssignMembers(v, p, prioritise(v, p, h.Members(p.Service)))
}

// NamedEndpoints are those of a service that proxies find by DNS.
func NamedEndpoints(v *facet.View, p destination.Destination) *endpointv3.ClusterLoadAssignment {
	p.Service, _ = v.Reader.Endpoints(p.Service.Key)
	offers := slices.DeleteFunc(Offers(v, p), func(o Offer) bool {
		path, isSocket := o.Endpoint.Address.Unix()
		if isSocket {
			LeaveOutEndpoint(v, o, resource.ReasonSocket, fmt.Sprintf("%s is a socket, but the service's resolution is %s",
				path, p.Service.Resolution))
		}
		return isSocket
	})
	offers = WithoutDuplicates(v, offers)
	if p.Service.Resolution == federation.DNSRoundRobinLB && len(offers) > 1 {
		for _, o := range offers[1:] {
			LeaveOutEndpoint(v, o, resource.ReasonOneAddressOnly, fmt.Sprintf("resolution %s uses one name, %s", p.Service.Resolution,
				offers[0].Endpoint.Address))
		}
		offers = offers[:1]
	}
	return Assign(p.Name, offers)
}

// Assign groups sorted offers by locality. Every locality has a weight, because
// gRPC drops those without; an endpoint has one where it is not 1.
func Assign(name string, offers []Offer) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	offers = slices.Clone(offers)
	slices.SortStableFunc(offers, func(o, p Offer) int { return o.Endpoint.Locality.Compare(p.Endpoint.Locality) })
	shift := WeightShift(offers)
	var group *endpointv3.LocalityLbEndpoints
	var locality federation.Locality
	for _, o := range offers {
		if group == nil || o.Endpoint.Locality != locality {
			locality = o.Endpoint.Locality
			group = &endpointv3.LocalityLbEndpoints{
				Locality:            &corev3.Locality{Region: locality.Region, Zone: locality.Zone, SubZone: locality.SubZone},
				LoadBalancingWeight: &wrapperspb.UInt32Value{},
			}
			a.Endpoints = append(a.Endpoints, group)
		}
		weight := max(o.Endpoint.LoadBalancingWeight()>>shift, 1)
		group.LoadBalancingWeight.Value += weight
		group.LbEndpoints = append(group.LbEndpoints, LBEndpoint(o, weight))
	}
	return a
}

// WeightShift is the least shift that brings the sum of all weights, none below
// 1, into what Envoy takes.
func WeightShift(offers []Offer) uint {
	for shift := uint(0); ; shift++ {
		sum := uint64(0)
		for _, o := range offers {
			sum += uint64(max(o.Endpoint.LoadBalancingWeight()>>shift, 1))
		}
		if sum <= math.MaxUint32 || shift == 32 {
			return shift
		}
	}
}

// LBEndpoint is the offer with its weight.
func LBEndpoint(o Offer, weight uint32) *endpointv3.LbEndpoint {
	e := &endpointv3.LbEndpoint{
		HealthStatus:   corev3.HealthStatus_HEALTHY,
		Metadata:       o.metadata(),
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: endpointAddress(o)}},
	}
	if o.Endpoint.Health == federation.Draining {
		e.HealthStatus = corev3.HealthStatus_DRAINING
	}
	if weight > 1 {
		e.LoadBalancingWeight = wrapperspb.UInt32(weight)
	}
	return e
}

func endpointAddress(o Offer) *corev3.Address {
	if path, ok := o.Endpoint.Address.Unix(); ok {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	}
	return resource.SocketAddress(o.Endpoint.Address.String(), o.number)
}
