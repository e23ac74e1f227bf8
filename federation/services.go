package federation

import (
	"fmt"
	"iter"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// Services are the services of a snapshot, and their indexes.
type Services struct {
	byKey   btree.Map[*Service]
	members btree.Map[struct{}]   // shard, service: the services to which a shard contributes
	ports   btree.Map[struct{}]   // port, service: services by the number of a TCP-based port
	vips    btree.Map[struct{}]   // VIP, service: services by a single address of any cluster
	aliases btree.Map[ServiceKey] // ExternalName, service
	names   btree.Map[ServiceKey] // name that a registry gives, service, shard: services by such a name
}

// Len is the number of services.
func (x *Services) Len() int { return x.byKey.Len() }

// All yields every service in the order of their keys.
func (x *Services) All() iter.Seq[*Service] { return x.From(ServiceKey{}) }

// From yields the service of the key and those that come after it.
func (x *Services) From(key ServiceKey) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		for _, svc := range x.byKey.From(key.sortKey()) {
			if !yield(svc) {
				return
			}
		}
	}
}

// UpTo yields the service of the key and those that come before it, the last one first; for the zero
// key, all of them.
func (x *Services) UpTo(key ServiceKey) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		behind := ""
		if key != (ServiceKey{}) {
			behind = key.sortKey() + nul
		}
		for _, svc := range x.byKey.Before(behind) {
			if !yield(svc) {
				return
			}
		}
	}
}

// OnPort yields the services that have a TCP-based port of that number, in the
// order of their keys.
func (x *Services) OnPort(number uint16) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		x.ports.WalkPrefix(portPrefix(number), func(k string, _ struct{}) bool {
			svc, _ := x.byKey.Get(k[portBytes:])
			return !yield(svc)
		})
	}
}

// Of yields the services to which the cluster contributes, in the order of
// provider and key.
func (x *Services) Of(id ClusterID) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		x.members.WalkPrefix(clusterPrefix(id), func(k string, _ struct{}) bool {
			svc, _ := x.byKey.Get(k[len(shardKeyOf(k).prefix()):])
			return !yield(svc)
		})
	}
}

func (x *Services) byHostname(host Hostname) []*Service {
	var found []*Service
	x.byKey.WalkPrefix(string(host)+nul, func(_ string, svc *Service) bool {
		found = append(found, svc)
		return false
	})
	return found
}

// Lookup returns the only service of that hostname; nil if there is none, an
// error that lists the namespaces if there are several.
func (x *Services) Lookup(host Hostname) (*Service, error) {
	found := x.byHostname(host)
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	namespaces := make([]string, len(found))
	for i, svc := range found {
		namespaces[i] = fmt.Sprintf("%q", svc.Key.Namespace)
	}
	return nil, fmt.Errorf("hostname %s exists in several namespaces: name one of %s", host, strings.Join(namespaces, ", "))
}
