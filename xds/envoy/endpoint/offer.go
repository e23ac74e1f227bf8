package endpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/destination"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// Offer is an endpoint that may be given to proxies, for one port.
type Offer struct {
	Endpoint *federation.Endpoint
	shard    federation.ShardKey
	number   uint16             // 0 for a socket
	peer     *corev3.Metadata   // of an endpoint that takes mutual TLS, for callers that offer it
	workload string             // for callers with Istio's filters
	plain    *federation.Object // because of which an endpoint that could take mutual TLS does not
}

// TakesMutualTLS reports whether the endpoint takes mutual TLS on the port.
func (o Offer) TakesMutualTLS() bool { return o.Endpoint.TakesMutualTLS() && o.plain == nil }

// LeaveOutPlain notes that the endpoint is excluded because it does not take mutual TLS.
func LeaveOutPlain(v *facet.View, o Offer, message string) {
	r := resource.Reason{Code: resource.ReasonNoMutualTLS, Shard: o.shard, Address: o.Endpoint.Address, Endpoint: o.Endpoint}
	if o.plain == nil {
		r.Message = message + ": it needs a sidecar, and the label security.istio.io/tlsMode: istio"
	} else {
		r.Cause, r.Message = o.plain.Key, message+": "+o.plain.Key.Title()+" has mode DISABLE"
	}
	v.LeaveOut(r)
}

func (o Offer) compareSocket(p Offer) int {
	return cmp.Or(o.Endpoint.Address.Compare(p.Endpoint.Address), cmp.Compare(o.number, p.number))
}

// Offers lists the endpoints that belong to the destination, serve the port and
// may be used, in the order of precedence of their clusters.
func Offers(v *facet.View, p destination.Destination) []Offer {
	var found []Offer
	peers := authentication.NewPeers(v.Reader, v.Facet.Objects)
	for _, group := range p.Service.Endpoints {
		portName, declared := p.Port.DeclaredBy(group.Shard)
		for i := range group.Endpoints {
			o := Offer{Endpoint: &group.Endpoints[i], shard: group.Shard}
			if !declared {
				LeaveOutEndpoint(v, o, resource.ReasonPortNotDeclared,
					fmt.Sprintf("%s does not declare port %d of the service", group.Shard, p.Port.Number))
				continue
			}
			if !group.HasLabels(o.Endpoint, p.Labels) {
				LeaveOutEndpoint(v, o, resource.ReasonSubset, fmt.Sprintf("%s does not have the labels of the subset", o.Endpoint.Address))
				continue
			}
			if !usable(v, &o, portName) {
				continue
			}
			if o.Endpoint.TakesMutualTLS() {
				o.plain = peers.PlainTextAlone(p.Service, group, o.Endpoint, o.number)
			}
			if p.Identity && o.TakesMutualTLS() {
				o.peer = transport.PeerOf(group.ClusterOf(o.Endpoint))
			}
			if p.Stats {
				o.workload = workloadOf(o.Endpoint, p.Service, group.ClusterOf(o.Endpoint))
			}
			found = append(found, o)
		}
	}
	return found
}

// FirstPlain is the first endpoint of the destination's service that does not take mutual TLS.
func FirstPlain(v *facet.View, d destination.Destination) *federation.Endpoint {
	peers := authentication.NewPeers(v.Reader, v.Facet.Objects)
	for _, group := range d.Service.Endpoints {
		portName, _ := d.Port.DeclaredBy(group.Shard)
		for i := range group.Endpoints {
			e := &group.Endpoints[i]
			number, _ := e.Port(portName)
			if !e.TakesMutualTLS() || peers.PlainTextAlone(d.Service, group, e, number) != nil {
				return e
			}
		}
	}
	return nil
}

// listens says which ports an endpoint has.
func listens(e *federation.Endpoint) string {
	if len(e.Ports) == 0 {
		return "it has no ports"
	}
	ports := make([]string, len(e.Ports))
	for i, p := range e.Ports {
		ports[i] = fmt.Sprintf("%q (%d)", p.Name, p.Number)
	}
	const shown = 10
	if more := len(ports) - shown; more > 0 {
		ports = append(ports[:shown], fmt.Sprintf("%d more", more))
	}
	return "it has " + strings.Join(ports, ", ")
}

func usable(v *facet.View, o *Offer, portName string) bool {
	address := o.Endpoint.Address
	if o.Endpoint.Health == federation.Unhealthy {
		LeaveOutEndpoint(v, *o, resource.ReasonUnhealthy, fmt.Sprintf("%s says that %s is unhealthy", o.shard, address))
		return false
	}
	if path, isSocket := address.Unix(); isSocket {
		if path == "" || len(path) > check.MaxSocketPath {
			LeaveOutEndpoint(v, *o, resource.ReasonInvalidAddress, fmt.Sprintf("the socket path %q is empty or longer than %d bytes",
				path, check.MaxSocketPath))
			return false
		}
		return true
	}
	number, served := o.Endpoint.Port(portName)
	ip, isIP := address.IP()
	_, isName := address.Host()
	switch {
	case !served:
		LeaveOutEndpoint(v, *o, resource.ReasonPortNotServed, fmt.Sprintf("%s does not listen on port %q; %s",
			address, portName, listens(o.Endpoint)))
	case number == 0 || !isIP && !isName || isIP && (ip.Zone() != "" || ip.IsUnspecified()):
		LeaveOutEndpoint(v, *o, resource.ReasonInvalidAddress, fmt.Sprintf("%s with port %d is not an address to send to", address, number))
	default:
		o.number = number
		return true
	}
	return false
}

// LeaveOutEndpoint notes why the endpoint is not in what is built.
func LeaveOutEndpoint(v *facet.View, o Offer, code, message string) {
	v.LeaveOut(resource.Reason{Code: code, Message: message, Shard: o.shard, Address: o.Endpoint.Address, Endpoint: o.Endpoint})
}

// WithoutDuplicates sorts and keeps each address and port once: that of the
// proxy's own network, since another network's is another machine, else the
// first in precedence.
func WithoutDuplicates(v *facet.View, offers []Offer) []Offer {
	if slices.IsSortedFunc(offers, Offer.compareSocket) && !hasDuplicates(offers) {
		return offers
	}
	network := v.Network()
	slices.SortStableFunc(offers, func(o, p Offer) int {
		return cmp.Or(o.compareSocket(p), resource.CompareTrueFirst(o.Endpoint.Network == network, p.Endpoint.Network == network))
	})
	kept := offers[:0]
	for _, o := range offers {
		if len(kept) > 0 && kept[len(kept)-1].compareSocket(o) == 0 {
			first := kept[len(kept)-1]
			LeaveOutEndpoint(v, o, resource.ReasonDuplicateAddress, fmt.Sprintf("%s has the same address %s and port %d in network %s", first.shard,
				o.Endpoint.Address, o.number, first.Endpoint.Network))
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

func hasDuplicates(sorted []Offer) bool {
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1].compareSocket(sorted[i]) == 0 {
			return true
		}
	}
	return false
}
