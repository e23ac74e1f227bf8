package federation

import (
	"iter"

	iradix "github.com/hashicorp/go-immutable-radix/v2"
)

// Snapshot is everything that the hub knows, as one immutable value with a
// version. Readers may keep one as long as they like; all its methods are safe
// for concurrent use, and what they return is read-only.
type Snapshot struct {
	version    uint64
	services   *iradix.Tree[*Service]
	members    *iradix.Tree[ServiceKey] // shard, service: the services to which a shard contributes
	ports      *iradix.Tree[ServiceKey] // port, service: services by the number of a TCP-based port
	vips       *iradix.Tree[ServiceKey] // VIP, service: services by a single address of any cluster
	aliases    *iradix.Tree[ServiceKey] // ExternalName, service
	workloads  *iradix.Tree[*Workload]  // shard, namespace, name
	homes      *iradix.Tree[int]        // namespace, provider, cluster: how many workloads the shard has there
	selectors  *iradix.Tree[ServiceKey] // namespace, provider, service, shard: services by whose workloads they select
	bindings   *iradix.Tree[ServiceKey] // service, binder, shard: services by those that they are bound to
	addresses  *iradix.Tree[resident]   // network, address, resident
	problems   *iradix.Tree[Problem]    // shard, origin, name
	clusters   *iradix.Tree[*Cluster]
	named      map[string]ClusterID // clusters by alias; empty: several have it
	networks   networkIndex
	objects    objectIndex
	revision   int64
	settings   Settings
	journal    journal
	superseded chan struct{}
}

// Empty is the snapshot of a hub that knows nothing yet, version 0.
func Empty() *Snapshot {
	return &Snapshot{
		services: iradix.New[*Service](), members: iradix.New[ServiceKey](), ports: iradix.New[ServiceKey](), vips: iradix.New[ServiceKey](), aliases: iradix.New[ServiceKey](),
		workloads: iradix.New[*Workload](), homes: iradix.New[int](), selectors: iradix.New[ServiceKey](), bindings: iradix.New[ServiceKey](),
		addresses: iradix.New[resident](), problems: iradix.New[Problem](),
		clusters: iradix.New[*Cluster](), networks: emptyNetworks(), objects: emptyObjects(), superseded: make(chan struct{}),
	}
}

// Version rises with every published change. It is the hub's own: it says
// nothing to another replica and starts anew with the process.
func (s *Snapshot) Version() uint64 { return s.version }

// Superseded is closed when a later snapshot was published. A snapshot that
// was never published, such as a dry run's, is never superseded.
func (s *Snapshot) Superseded() <-chan struct{} { return s.superseded }

// Settings returns the settings under which the snapshot was made.
func (s *Snapshot) Settings() Settings { return s.settings }

// Service returns the service of that key.
func (s *Snapshot) Service(key ServiceKey) (*Service, bool) { return s.services.Get(key.bytes()) }

// CountServices is the number of services.
func (s *Snapshot) CountServices() int { return s.services.Len() }

// Services yields every service in the order of their keys.
func (s *Snapshot) Services() iter.Seq[*Service] { return s.ServicesAfter(ServiceKey{}) }

// ServicesAfter yields the services whose keys come after the given one.
func (s *Snapshot) ServicesAfter(key ServiceKey) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		it := s.services.Root().Iterator()
		it.SeekLowerBound(key.bytes())
		for _, svc, ok := it.Next(); ok; _, svc, ok = it.Next() {
			if svc.Key != key && !yield(svc) {
				return
			}
		}
	}
}

// ServicesOnPort yields the services that have a TCP-based port of that number,
// in the order of their keys.
func (s *Snapshot) ServicesOnPort(number uint16) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		s.ports.Root().WalkPrefix(portKey(number, ServiceKey{})[:2], func(_ []byte, key ServiceKey) bool {
			svc, _ := s.Service(key)
			return !yield(svc)
		})
	}
}

// ServicesOf yields the services to which the cluster contributes, in the order
// of provider and key.
func (s *Snapshot) ServicesOf(id ClusterID) iter.Seq[*Service] {
	return func(yield func(*Service) bool) {
		s.members.Root().WalkPrefix(clusterPrefix(id), func(_ []byte, key ServiceKey) bool {
			svc, _ := s.Service(key)
			return !yield(svc)
		})
	}
}

// Cluster returns the attached cluster of that ID.
func (s *Snapshot) Cluster(id ClusterID) (*Cluster, bool) { return s.clusters.Get([]byte(id)) }

// Clusters yields every cluster in the order of their IDs.
func (s *Snapshot) Clusters() iter.Seq[*Cluster] {
	return func(yield func(*Cluster) bool) {
		s.clusters.Root().Walk(func(_ []byte, c *Cluster) bool { return !yield(c) })
	}
}

// Problems yields what the hub does not use of what the cluster said.
func (s *Snapshot) Problems(id ClusterID) iter.Seq[Problem] {
	return func(yield func(Problem) bool) {
		s.problems.Root().WalkPrefix(clusterPrefix(id), func(_ []byte, p Problem) bool { return !yield(p) })
	}
}

// Workload returns what the shard says of one of its workloads.
func (s *Snapshot) Workload(shard ShardKey, key WorkloadKey) (*Workload, bool) {
	return s.workloads.Get(workloadBytes(shard, key))
}

// Contribution returns everything that a shard says, as one full Edit: what a
// last-known-good file holds and what a suspicious list is compared with.
func (s *Snapshot) Contribution(shard ShardKey) Edit {
	e := Edit{
		Source:    shard,
		Services:  Delta[ServiceKey, *Shard]{Full: true, Set: map[ServiceKey]*Shard{}},
		Workloads: Delta[WorkloadKey, *Workload]{Full: true, Set: map[WorkloadKey]*Workload{}},
	}
	s.members.Root().WalkPrefix([]byte(shard.prefix()), func(_ []byte, key ServiceKey) bool {
		svc, _ := s.Service(key)
		e.Services.Set[key] = svc.Shards[shard]
		return false
	})
	s.workloads.Root().WalkPrefix([]byte(shard.prefix()), func(k []byte, w *Workload) bool {
		e.Workloads.Set[workloadKeyOf(k, shard)] = w
		return false
	})
	return e
}
