package envoy

import (
	"iter"

	"isthmus.dev/isthmus/federation"
)

// Where services of several namespaces share a hostname and a port, the name of
// the cluster stands for one of them, its owner: those that everyone sees come
// first, then the first in the order of keys. The others have no clusters, and
// nothing that is theirs leads to the owner's.

// ownerOf finds the service that a cluster's name stands for; false where that
// is not one of the facet's.
func (b *builder) ownerOf(id clusterID) (servedPort, bool) {
	if b.facet.Scope != scopePublic {
		b.reader.SpecsOnPort(id.port) // a service that everyone sees may come
	}
	owner, losers := firstOwner(b.reader.ByHostname(id.host), id.port, b.sees)
	for _, s := range losers {
		b.leaveOut(hostnameTaken(owner, s))
	}
	return owner, owner.service != nil && b.facet.covers(owner.service)
}

// owns tells that the name of the service's cluster stands for the service.
func (b *builder) owns(s *federation.Service, number uint16) bool {
	owner, _ := firstOwner(b.reader.ByHostname(s.Key.Hostname), number, b.sees)
	if owner.service != s {
		b.leaveOut(hostnameTaken(owner, s))
	}
	return owner.service == s
}

// sees tells that the facet's proxies know of the service.
func (b *builder) sees(s *federation.Service) bool {
	everyone := b.facet.Egress == "" && isPublic(s)
	return everyone || b.facet.covers(s)
}

// firstOwner picks among services of one hostname, given in the order of keys.
func firstOwner(services []*federation.Service, number uint16, sees func(*federation.Service) bool) (owner servedPort, losers []*federation.Service) {
	for _, wantPublic := range []bool{true, false} {
		for _, s := range services {
			port, ok := tcpPort(s, number)
			switch {
			case !ok || isPublic(s) != wantPublic || !sees(s):
			case owner.service == nil:
				owner = servedPort{s, port}
			default:
				losers = append(losers, s)
			}
		}
	}
	return owner, losers
}

// byHostname yields services, given in the order of keys, by hostname. What it
// yields is overwritten.
func byHostname(services iter.Seq[*federation.Service]) iter.Seq[[]*federation.Service] {
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

func tcpPort(s *federation.Service, number uint16) (federation.ServicePort, bool) {
	p, ok := s.Port(number)
	return p, ok && p.Protocol.Transport() == federation.TransportTCP
}

func hostnameTaken(owner servedPort, loser *federation.Service) Reason {
	return Reason{Code: ReasonHostnameTaken, Message: "service " + loser.Key.String() + " is left out: " +
		owner.service.Key.String() + " has the same hostname and comes first; give one of them another name"}
}
