package envoy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// offer is an endpoint that may be given to proxies, for one port.
type offer struct {
	endpoint *federation.Endpoint
	shard    federation.ShardKey
	number   uint16           // 0 for a socket
	peer     *corev3.Metadata // of an endpoint that takes mutual TLS, for callers that offer it
}

func (o offer) compareSocket(p offer) int {
	return cmp.Or(o.endpoint.Address.Compare(p.endpoint.Address), cmp.Compare(o.number, p.number))
}

// assignment builds the endpoints of a service port: those of all clusters that
// declare the port, or the gateways of their networks, each address and port
// once, one group for each locality.
func (b *builder) assignment(name string) proto.Message {
	p, ok := b.destinationOf(name)
	if !ok || !p.eds() || !hasPlace(b.facet, p.service, b.reader) {
		return nil
	}
	p.service, _ = b.reader.Endpoints(p.service.Key)
	offers := slices.DeleteFunc(b.offers(p), func(o offer) bool {
		host, isName := o.endpoint.Address.Host()
		if isName {
			b.leaveOutEndpoint(o, resource.ReasonHostname, fmt.Sprintf("%s is a DNS name, but the service's resolution is %s: give the endpoint an IP address or the service a DNS resolution", host, p.service.Resolution))
		}
		return isName
	})
	h := b.horizonOf(p, b.keepClusterLocal(p, offers))
	if len(h.entries) > 0 {
		b.reader.Accounts(p.service.Key) // what a gateway's peers are depends on them
	}
	members := h.members(p.service)
	b.prioritise(p, members)
	return b.assignMembers(p, members)
}

// namedEndpoints are those of a service that proxies find by DNS.
func (b *builder) namedEndpoints(p destination) *endpointv3.ClusterLoadAssignment {
	p.service, _ = b.reader.Endpoints(p.service.Key)
	offers := slices.DeleteFunc(b.offers(p), func(o offer) bool {
		path, isSocket := o.endpoint.Address.Unix()
		if isSocket {
			b.leaveOutEndpoint(o, resource.ReasonSocket, fmt.Sprintf("%s is a socket, but the service's resolution is %s", path, p.service.Resolution))
		}
		return isSocket
	})
	offers = b.withoutDuplicates(offers)
	if p.service.Resolution == federation.DNSRoundRobinLB && len(offers) > 1 {
		for _, o := range offers[1:] {
			b.leaveOutEndpoint(o, resource.ReasonOneAddressOnly, fmt.Sprintf("resolution %s uses one name, %s", p.service.Resolution, offers[0].endpoint.Address))
		}
		offers = offers[:1]
	}
	return assign(p.name, offers)
}

// Offers lists the endpoints that belong to the destination, serve the port and
// may be used, in the order of precedence of their clusters.
func (b *builder) offers(p destination) []offer {
	var found []offer
	for _, group := range p.service.Endpoints {
		portName, declared := p.port.DeclaredBy(group.Shard)
		for i := range group.Endpoints {
			o := offer{endpoint: &group.Endpoints[i], shard: group.Shard}
			if p.identity && o.endpoint.TakesMutualTLS() {
				o.peer = transport.PeerOf(group.ClusterOf(o.endpoint))
			}
			if !declared {
				b.leaveOutEndpoint(o, resource.ReasonPortNotDeclared, fmt.Sprintf("%s does not declare port %d of the service", group.Shard, p.port.Number))
				continue
			}
			if !carries(o.endpoint.Labels, p.labels) {
				b.leaveOutEndpoint(o, resource.ReasonSubset, fmt.Sprintf("%s does not have the labels of the subset", o.endpoint.Address))
				continue
			}
			if b.usable(&o, portName) {
				found = append(found, o)
			}
		}
	}
	return found
}

func (b *builder) usable(o *offer, portName string) bool {
	address := o.endpoint.Address
	if o.endpoint.Health == federation.Unhealthy {
		b.leaveOutEndpoint(*o, resource.ReasonUnhealthy, fmt.Sprintf("%s says that %s is unhealthy", o.shard, address))
		return false
	}
	if path, isSocket := address.Unix(); isSocket {
		if path == "" || len(path) > check.MaxSocketPath {
			b.leaveOutEndpoint(*o, resource.ReasonInvalidAddress, fmt.Sprintf("the socket path %q is empty or longer than %d bytes", path, check.MaxSocketPath))
			return false
		}
		return true
	}
	number, served := o.endpoint.Port(portName)
	ip, isIP := address.IP()
	_, isName := address.Host()
	switch {
	case !served:
		b.leaveOutEndpoint(*o, resource.ReasonPortNotServed, fmt.Sprintf("%s does not listen for port %q", address, portName))
	case number == 0 || !isIP && !isName || isIP && (ip.Zone() != "" || ip.IsUnspecified()):
		b.leaveOutEndpoint(*o, resource.ReasonInvalidAddress, fmt.Sprintf("%s with port %d is no address to send to", address, number))
	default:
		o.number = number
		return true
	}
	return false
}

// carries tells that all of the wanted labels are there.
func carries(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if have, has := labels[key]; !has || have != value {
			return false
		}
	}
	return true
}

func (b *builder) leaveOutEndpoint(o offer, code, message string) {
	b.leaveOut(resource.Reason{Code: code, Message: message, Shard: o.shard, Address: o.endpoint.Address, Endpoint: o.endpoint})
}

// withoutDuplicates sorts and keeps each address and port once: that of the
// proxy's own network, since another network's is another machine, else the
// first in precedence.
func (b *builder) withoutDuplicates(offers []offer) []offer {
	if slices.IsSortedFunc(offers, offer.compareSocket) && !hasTwins(offers) {
		return offers
	}
	network := b.network()
	slices.SortStableFunc(offers, func(o, p offer) int {
		return cmp.Or(o.compareSocket(p), resource.CompareTrueFirst(o.endpoint.Network == network, p.endpoint.Network == network))
	})
	kept := offers[:0]
	for _, o := range offers {
		if len(kept) > 0 && kept[len(kept)-1].compareSocket(o) == 0 {
			first := kept[len(kept)-1]
			b.leaveOutEndpoint(o, resource.ReasonDuplicateAddress, fmt.Sprintf("%s has the same address %s and port %d in network %s", first.shard, o.endpoint.Address, o.number, first.endpoint.Network))
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

func hasTwins(sorted []offer) bool {
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1].compareSocket(sorted[i]) == 0 {
			return true
		}
	}
	return false
}

// network is that of the facet's proxies.
func (b *builder) network() federation.NetworkID {
	if b.facet.Network != "" {
		return b.facet.Network
	}
	if b.facet.Cluster != "" {
		if c, ok := b.reader.Cluster(b.facet.Cluster); ok {
			return c.Network()
		}
	}
	return federation.DefaultNetwork
}

// assign groups sorted offers by locality. Every locality has a weight, because
// gRPC drops those without; an endpoint has one where it is not 1.
func assign(name string, offers []offer) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	offers = slices.Clone(offers)
	slices.SortStableFunc(offers, func(o, p offer) int { return o.endpoint.Locality.Compare(p.endpoint.Locality) })
	shift := weightShift(offers)
	var group *endpointv3.LocalityLbEndpoints
	var locality federation.Locality
	for _, o := range offers {
		if group == nil || o.endpoint.Locality != locality {
			locality = o.endpoint.Locality
			group = &endpointv3.LocalityLbEndpoints{
				Locality:            &corev3.Locality{Region: locality.Region, Zone: locality.Zone, SubZone: locality.SubZone},
				LoadBalancingWeight: &wrapperspb.UInt32Value{},
			}
			a.Endpoints = append(a.Endpoints, group)
		}
		weight := max(o.endpoint.LoadBalancingWeight()>>shift, 1)
		group.LoadBalancingWeight.Value += weight
		group.LbEndpoints = append(group.LbEndpoints, lbEndpoint(o, weight))
	}
	return a
}

// weightShift is the least shift that brings the sum of all weights, none below
// 1, into what Envoy takes.
func weightShift(offers []offer) uint {
	for shift := uint(0); ; shift++ {
		sum := uint64(0)
		for _, o := range offers {
			sum += uint64(max(o.endpoint.LoadBalancingWeight()>>shift, 1))
		}
		if sum <= math.MaxUint32 || shift == 32 {
			return shift
		}
	}
}

func lbEndpoint(o offer, weight uint32) *endpointv3.LbEndpoint {
	e := &endpointv3.LbEndpoint{
		HealthStatus:   corev3.HealthStatus_HEALTHY,
		Metadata:       o.peer,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: endpointAddress(o)}},
	}
	if o.endpoint.Health == federation.Draining {
		e.HealthStatus = corev3.HealthStatus_DRAINING
	}
	if weight > 1 {
		e.LoadBalancingWeight = wrapperspb.UInt32(weight)
	}
	return e
}

func endpointAddress(o offer) *corev3.Address {
	if path, ok := o.endpoint.Address.Unix(); ok {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	}
	return resource.SocketAddress(o.endpoint.Address.String(), o.number)
}
