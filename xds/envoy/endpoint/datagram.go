package endpoint

import (
	"fmt"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Datagrams are the endpoints to which proxies send datagrams: those that they reach at their own
// addresses. Gateways of networks pass none on.
func Datagrams(v *facet.View, d destination.Destination) *endpointv3.ClusterLoadAssignment {
	d.Service, _ = v.Reader.Endpoints(d.Service.Key)
	own, networks := v.Network(), v.Networks()
	offers := slices.DeleteFunc(KeepClusterLocal(v, d, Offers(v, d)), func(o Offer) bool {
		if _, isIP := o.Endpoint.Address.IP(); !isIP {
			LeaveOutEndpoint(v, o, resource.ReasonHostname,
				fmt.Sprintf("%s is not an IP address, to which datagrams can be sent", o.Endpoint.Address))
			return true
		}
		id := o.Endpoint.Network
		if d.Service.MeshExternal || id == own {
			return false
		}
		if n := networks(id); n != nil && !n.Gated {
			return false
		}
		LeaveOutEndpoint(v, o, resource.ReasonOtherNetwork,
			fmt.Sprintf("%s is in network %s, whose gateways pass no datagrams on", o.Endpoint.Address, id))
		return true
	})
	a := Assign(d.Name, WithoutDuplicates(v, offers))
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			e.GetEndpoint().GetAddress().GetSocketAddress().Protocol = corev3.SocketAddress_UDP
		}
	}
	return a
}
