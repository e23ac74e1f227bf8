// Package service answers questions about a service as the proxies of a facet see it:
// which service owns a hostname, which other names and addresses it has, and which services
// depend on the place of the proxies.
package service

import (
	"iter"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Where services of several namespaces share a hostname and a port, the name of
// the cluster means one of them, its owner: that of the proxy's own namespace,
// else one that a cluster has, so that no ServiceEntry of another namespace takes over
// its hostname, else the oldest that the proxy sees, else the first in the order of
// namespaces.
// The others have no clusters, and nothing that is theirs leads to the owner's.
//
// Most hostnames have the same owner for every namespace, and their resources are
// built once, for everyone (node.ScopePublic). A namespace builds those of the others
// itself (node.ScopePrivate); they come before the ones for everyone.

// OwnerOf finds the service that a cluster's name means; false where that
// is not one of the facet's.
func OwnerOf(v *facet.View, id resource.ClusterID) (ServedPort, bool) {
	if !v.Facet.Has(node.Public) {
		v.Reader.SpecsOnPort(id.Port) // a service that everyone sees may come
	}
	services := v.Reader.ByHostname(id.Host)
	owner, losers := OwnerAmong(v, services, id.Port)
	for _, s := range losers {
		v.LeaveOut(Taken(v, owner, s))
	}
	if owner.Service == nil || !v.Facet.Covers(owner.Service) {
		return owner, false
	}
	if v.Facet.Has(node.Differs) && node.IsPublic(owner.Service) {
		everyones, _ := FirstOwner(services, id.Port, "", node.IsPublic)
		return owner, everyones.Service != owner.Service
	}
	return owner, true
}

// Owns reports whether the name of the service's cluster means this service.
func Owns(v *facet.View, s *federation.Service, number uint16) bool {
	owner, _ := OwnerAmong(v, v.Reader.ByHostname(s.Key.Hostname), number)
	if owner.Service != s {
		v.LeaveOut(Taken(v, owner, s))
	}
	return owner.Service == s
}

// OwnerAmong picks the owner among the services of one hostname, given in the
// order of keys, that the facet's proxies see.
func OwnerAmong(v *facet.View, services []*federation.Service, number uint16) (owner ServedPort, losers []*federation.Service) {
	return FirstOwner(services, number, v.Facet.OwnNamespace(), v.Sees)
}

// FirstOwner picks for proxies of the namespace own, the empty one standing for
// any.
func FirstOwner(
	services []*federation.Service, number uint16, own string, sees func(*federation.Service) bool,
) (owner ServedPort, losers []*federation.Service) {
	return firstWith(TCPPort, services, number, own, sees)
}

// DatagramOwner picks the service of one hostname, given in the order of keys, to which datagrams
// for the port go.
func DatagramOwner(v *facet.View, services []*federation.Service, number uint16) ServedPort {
	owner, _ := firstWith(datagramPort, services, number, v.Facet.OwnNamespace(), v.Sees)
	return owner
}

func firstWith(
	portOf func(*federation.Service, uint16) (federation.ServicePort, bool), services []*federation.Service,
	number uint16, own string, sees func(*federation.Service) bool,
) (owner ServedPort, losers []*federation.Service) {
	for _, s := range services {
		port, ok := portOf(s, number)
		switch {
		case !ok || !sees(s):
		case owner.Service == nil:
			owner = ServedPort{s, port}
		case ComesBefore(s, owner.Service, own):
			losers = append(losers, owner.Service)
			owner = ServedPort{s, port}
		default:
			losers = append(losers, s)
		}
	}
	return owner, losers
}

// ComesBefore reports whether the hostname is s's rather than t's for proxies of the
// namespace own. Of services of equal age neither comes before the other.
func ComesBefore(s, t *federation.Service, own string) bool {
	if ours, theirs := IsOwn(s, own), IsOwn(t, own); ours != theirs {
		return ours
	}
	if found, foundToo := HasPods(s), HasPods(t); found != foundToo {
		return found
	}
	return s.Created.Before(t.Created)
}

// IsOwn reports whether the service is of the namespace, where there is one.
func IsOwn(s *federation.Service, namespace string) bool {
	return namespace != "" && s.Key.Namespace == namespace
}

// MayDiffer reports whether the hostname may have another owner for the facet's
// namespace than for everyone.
func MayDiffer(f node.Facet, host federation.Hostname, r *federation.Reader) bool {
	services := r.ByHostname(host)
	return len(services) > 1 && slices.ContainsFunc(services, func(s *federation.Service) bool {
		return IsOwn(s, f.Namespace) || !node.IsPublic(s) && s.VisibleFrom(f.Namespace)
	})
}

// ByHostname yields services, given in the order of keys, by hostname. What it
// yields is overwritten.
func ByHostname(services iter.Seq[*federation.Service]) iter.Seq[[]*federation.Service] {
	return func(yield func([]*federation.Service) bool) {
		var group []*federation.Service
		for s := range services {
			if len(group) > 0 && group[0].Key.Hostname != s.Key.Hostname {
				if !yield(group) {
					return
				}
				group = group[:0]
			}
			group = append(group, s)
		}
		if len(group) > 0 {
			yield(group)
		}
	}
}

// TCPPort is the service's port of that number, if TCP carries it.
func TCPPort(s *federation.Service, number uint16) (federation.ServicePort, bool) {
	p, ok := s.Port(number)
	return p, ok && p.Protocol.Transport() == federation.TransportTCP
}

// datagramPort is the service's port of that number for datagrams.
func datagramPort(s *federation.Service, number uint16) (federation.ServicePort, bool) {
	i := slices.IndexFunc(s.Ports, func(p federation.ServicePort) bool {
		return p.Number == number && p.Protocol.Transport() == federation.TransportUDP
	})
	if i < 0 {
		return federation.ServicePort{}, false
	}
	return s.Ports[i], true
}

// Taken is the reason that the hostname is another service's for the facet's proxies.
func Taken(v *facet.View, owner ServedPort, loser *federation.Service) resource.Reason {
	return HostnameTaken(owner, loser, v.Facet.OwnNamespace())
}

// HostnameTaken is the reason that the hostname is another service's for proxies of the
// namespace own.
func HostnameTaken(owner ServedPort, loser *federation.Service, own string) resource.Reason {
	why := " has the same hostname, and its namespace comes first; give one of them another name"
	switch {
	case IsOwn(owner.Service, own):
		why = " has the same hostname and is of the proxies' own namespace; give one of them another name"
	case HasPods(owner.Service) && !HasPods(loser):
		why = " has the same hostname and is a service of a cluster; give the ServiceEntry another host"
	case owner.Service.Created.Before(loser.Created):
		why = " has the same hostname and is older; give one of them another name"
	}
	return resource.Reason{Code: resource.ReasonHostnameTaken, Service: loser.Key, Message: "service " + loser.Key.String() +
		" is excluded: " + owner.Service.Key.String() + why}
}

// ServedPort is a TCP-based port of a service.
type ServedPort struct {
	Service *federation.Service
	Port    federation.ServicePort
}

// ByServerName reports whether connections to the port are told apart by the name of
// the server alone: the port speaks TLS and the service has no VIP.
func ByServerName(p ServedPort, f node.Facet) bool {
	return AsksByName(p.Port.Protocol) && len(ListenerVIPs(p.Service, f)) == 0
}

// AsksByName reports whether connections of the protocol begin with the name of the
// server that they are for.
func AsksByName(p federation.Protocol) bool { return p == federation.TLS || p == federation.HTTPS }

// Detected reports whether proxies detect what callers speak to the port, of which nothing
// says it.
func Detected(v *facet.View, p federation.ServicePort) bool {
	return p.Undeclared && !v.Facet.GRPC && v.Reader.Mesh().DetectsOutbound()
}

// MayBeHTTP reports whether requests to the port may be routed one by one.
func MayBeHTTP(v *facet.View, p federation.ServicePort) bool {
	return p.Protocol.IsHTTP() || Detected(v, p)
}

// ByHost reports whether connections to an undeclared port can be told apart by the host of
// requests alone: nobody gave the service an address. Proxies with DNS capture know an
// automatic one.
func ByHost(p ServedPort) bool {
	return p.Port.Undeclared && !callersDialPods(p.Service) && !hasGivenAddress(p.Service)
}

// ByPort reports whether the number of the port alone tells connections to it apart: a ServiceEntry
// declares the service without addresses, and its connections do not begin with a name.
func ByPort(p ServedPort, f node.Facet) bool {
	s := p.Service
	return !p.Port.Protocol.IsHTTP() && !AsksByName(p.Port.Protocol) && len(s.Endpoints) > 0 && !HasPods(s) &&
		!hasGivenAddress(s) && len(ListenerVIPs(s, f)) == 0
}

// hasGivenAddress reports whether somebody gave the service an address.
func hasGivenAddress(s *federation.Service) bool {
	for _, prefixes := range s.ClusterVIPs.All() {
		if slices.ContainsFunc(prefixes, func(vip netip.Prefix) bool { return !federation.IsAllocatedVIP(vip.Addr()) }) {
			return true
		}
	}
	return false
}

// PortNumbers are those of the services' TCP-based ports.
func PortNumbers(services []*federation.Service) []uint16 {
	var numbers []uint16
	for _, s := range services {
		for _, p := range s.Ports {
			if p.Protocol.Transport() == federation.TransportTCP && !slices.Contains(numbers, p.Number) {
				numbers = append(numbers, p.Number)
			}
		}
	}
	return numbers
}

// SpeaksHTTP reports whether any service speaks HTTP on the port, or may and has no address.
func SpeaksHTTP(v *facet.View, number uint16) bool {
	for group := range ByHostname(v.Reader.SpecsOnPort(number)) {
		owner, _ := OwnerAmong(v, group, number)
		if owner.Service != nil && v.Exposes(owner.Service, number) &&
			(owner.Port.Protocol.IsHTTP() || ByHost(owner) && Detected(v, owner.Port)) {
			return true
		}
	}
	return false
}
