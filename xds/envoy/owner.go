package envoy

import (
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Where services of several namespaces share a hostname and a port, the name of
// the cluster stands for one of them, its owner: that of the proxy's own namespace,
// else one that a cluster has, so that no ServiceEntry of another namespace takes over
// its hostname, else the oldest that the proxy sees, else the first in the order of
// namespaces.
// The others have no clusters, and nothing that is theirs leads to the owner's.
//
// Most hostnames have the same owner for every namespace, and their resources are
// built once, for everyone (node.ScopePublic). A namespace builds those of the others
// itself (node.ScopePrivate); they come before the ones for everyone.

// ownerOf finds the service that a cluster's name stands for; false where that
// is not one of the facet's.
func (b *builder) ownerOf(id resource.ClusterID) (servedPort, bool) {
	if b.facet.Scope != node.ScopePublic {
		b.reader.SpecsOnPort(id.Port) // a service that everyone sees may come
	}
	services := b.reader.ByHostname(id.Host)
	owner, losers := b.firstOwner(services, id.Port)
	for _, s := range losers {
		b.leaveOut(b.hostnameTaken(owner, s))
	}
	if owner.service == nil || !b.facet.Covers(owner.service) {
		return owner, false
	}
	if b.facet.Scope == node.ScopePrivate && node.IsPublic(owner.service) {
		everyones, _ := firstOwner(services, id.Port, "", node.IsPublic)
		return owner, everyones.service != owner.service
	}
	return owner, true
}

// owns tells that the name of the service's cluster stands for the service.
func (b *builder) owns(s *federation.Service, number uint16) bool {
	owner, _ := b.firstOwner(b.reader.ByHostname(s.Key.Hostname), number)
	if owner.service != s {
		b.leaveOut(b.hostnameTaken(owner, s))
	}
	return owner.service == s
}

// StandsFor tells that proxies of the facet get the resource, a cluster or its
// endpoints, for the service and not for another one of its hostname.
func StandsFor(name string, f node.Facet, s *federation.Service, in *federation.Snapshot) bool {
	id, ok := resource.ParseClusterName(name)
	if !ok {
		id, ok = resource.ParseServerName(name)
	}
	if !ok {
		return true // it has a name of its own, and was built from the service
	}
	b := &builder{facet: f, reader: in.Read()}
	owner, _ := b.firstOwner(in.ByHostname(s.Key.Hostname), id.Port)
	return strings.EqualFold(string(id.Host), string(s.Key.Hostname)) && owner.service == s
}

// sees tells that the facet's proxies know of the service.
func (b *builder) sees(s *federation.Service) bool {
	everyone := b.facet.Egress == "" && node.IsPublic(s)
	return everyone || b.facet.Covers(s)
}

// firstOwner picks the owner among the services of one hostname, given in the
// order of keys, that the facet's proxies see.
func (b *builder) firstOwner(services []*federation.Service, number uint16) (owner servedPort, losers []*federation.Service) {
	return firstOwner(services, number, b.facet.OwnNamespace(), b.sees)
}

// firstOwner picks for proxies of the namespace own, the empty one standing for
// any.
func firstOwner(services []*federation.Service, number uint16, own string, sees func(*federation.Service) bool) (owner servedPort, losers []*federation.Service) {
	for _, s := range services {
		port, ok := tcpPort(s, number)
		switch {
		case !ok || !sees(s):
		case owner.service == nil:
			owner = servedPort{s, port}
		case comesBefore(s, owner.service, own):
			losers = append(losers, owner.service)
			owner = servedPort{s, port}
		default:
			losers = append(losers, s)
		}
	}
	return owner, losers
}

// comesBefore tells that the hostname is s's rather than t's for proxies of the
// namespace own. Of services of equal age neither comes before the other.
func comesBefore(s, t *federation.Service, own string) bool {
	if ours, theirs := isOwn(s, own), isOwn(t, own); ours != theirs {
		return ours
	}
	if found, foundToo := hasPods(s), hasPods(t); found != foundToo {
		return found
	}
	return s.Created.Before(t.Created)
}

func isOwn(s *federation.Service, namespace string) bool {
	return namespace != "" && s.Key.Namespace == namespace
}

// mayDiffer tells that the hostname may have another owner for the facet's
// namespace than for everyone.
func mayDiffer(f node.Facet, host federation.Hostname, s *federation.Snapshot) bool {
	services := s.ByHostname(host)
	return len(services) > 1 && slices.ContainsFunc(services, func(s *federation.Service) bool {
		return isOwn(s, f.Namespace) || !node.IsPublic(s) && s.VisibleFrom(f.Namespace)
	})
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

func (b *builder) hostnameTaken(owner servedPort, loser *federation.Service) resource.Reason {
	return hostnameTaken(owner, loser, b.facet.OwnNamespace())
}

func hostnameTaken(owner servedPort, loser *federation.Service, own string) resource.Reason {
	why := " has the same hostname and is older; give one of them another name"
	switch {
	case isOwn(owner.service, own):
		why = " has the same hostname and is of the proxies' own namespace; give one of them another name"
	case hasPods(owner.service) && !hasPods(loser):
		why = " has the same hostname and is a service of a cluster; give the ServiceEntry another host"
	}
	return resource.Reason{Code: resource.ReasonHostnameTaken, Service: loser.Key, Message: "service " + loser.Key.String() + " is left out: " + owner.service.Key.String() + why}
}
