package federation

import (
	"iter"
	"time"

	"isthmus.dev/isthmus/internal/btree"
)

// Snapshot is everything that the hub knows, as one immutable value with a
// version. Readers may keep one as long as they like; all its methods are safe
// for concurrent use, and what they return is read-only.
type Snapshot struct {
	version    uint64
	services   Services
	workloads  workloadIndex
	bindings   btree.Map[ServiceKey] // service, binder, shard: services by those that they are bound to
	addresses  btree.Map[struct{}]   // network, address, owner
	clusters   clusterIndex
	networks   networkIndex
	objects    Objects
	keySets    btree.Map[KeySet] // source
	revision   int64
	clock      time.Time
	settings   Settings
	journal    journal
	superseded chan struct{}
	published  time.Time // zero: never
}

// workloadIndex holds workloads, and finds them by labels and the services by whose
// workloads they select.
type workloadIndex struct {
	byKey      btree.Map[*Workload]  // shard, namespace, name
	namespaces btree.Map[int]        // namespace, provider, cluster: how many workloads the shard has there
	selectors  btree.Map[ServiceKey] // namespace, provider, service, shard: services by whose workloads they select
	selectedBy btree.Map[int]        // namespace, label: how many selectors have a value for it
	labels     btree.Map[struct{}]   // namespace, label, value, provider, cluster, workload: where selectors have a value for the label
}

// clusterIndex holds clusters and finds them.
type clusterIndex struct {
	byID     btree.Map[*Cluster]
	problems btree.Map[Problem]   // shard, origin, name
	about    btree.Map[struct{}]  // cluster, object, and the key of a problem with it
	named    map[string]ClusterID // clusters by alias; empty: several have it
}

// Empty is the snapshot of a hub that knows nothing yet, version 0.
func Empty() *Snapshot {
	return &Snapshot{superseded: make(chan struct{})}
}

// Version rises with every published change. It is the hub's own: it says
// nothing to another replica and starts again with the process.
func (s *Snapshot) Version() uint64 { return s.version }

// Superseded is closed when a later snapshot was published. A snapshot that
// was never published, such as a dry run's, is never superseded.
func (s *Snapshot) Superseded() <-chan struct{} { return s.superseded }

// PublishedAt is when an Aggregate published the snapshot; zero: it was never
// published.
func PublishedAt(s *Snapshot) time.Time { return s.published }

// ClockOf is the time that the snapshot is of, for what changes with time: the ramps of Drains.
// It moves when the hub says so, not by itself.
func ClockOf(s *Snapshot) time.Time { return s.clock }

// Settings returns the settings under which the snapshot was made.
func (s *Snapshot) Settings() Settings { return s.settings }

// Service returns the service of that key.
func (s *Snapshot) Service(key ServiceKey) (*Service, bool) {
	return s.services.byKey.Get(key.sortKey())
}

// Services are all services.
func (s *Snapshot) Services() *Services { return &s.services }

// Cluster returns the attached cluster of that ID.
func (s *Snapshot) Cluster(id ClusterID) (*Cluster, bool) { return s.clusters.byID.Get(string(id)) }

// Clusters yields every cluster in the order of their IDs.
func (s *Snapshot) Clusters() iter.Seq[*Cluster] {
	return func(yield func(*Cluster) bool) {
		s.clusters.byID.Walk(func(_ string, c *Cluster) bool { return !yield(c) })
	}
}

// Problems yields what the hub does not use of what the cluster said.
func (s *Snapshot) Problems(id ClusterID) iter.Seq[Problem] {
	return func(yield func(Problem) bool) {
		s.clusters.problems.WalkPrefix(clusterPrefix(id), func(_ string, p Problem) bool { return !yield(p) })
	}
}

// Workload returns what the shard reports about one of its workloads.
func (s *Snapshot) Workload(shard ShardKey, key WorkloadKey) (*Workload, bool) {
	return s.workloads.byKey.Get(workloadSortKey(shard, key))
}

// Contribution returns everything that a shard says, as one full Edit: what a
// last-known-good file holds and what a suspicious list is compared with.
func (s *Snapshot) Contribution(shard ShardKey) Edit {
	e := Edit{
		Source:    shard,
		Services:  Delta[ServiceKey, *Shard]{Full: true, Set: map[ServiceKey]*Shard{}},
		Workloads: Delta[WorkloadKey, *Workload]{Full: true, Set: map[WorkloadKey]*Workload{}},
	}
	prefix := shard.prefix()
	s.services.members.WalkPrefix(prefix, func(k string, _ struct{}) bool {
		svc, _ := s.services.byKey.Get(k[len(prefix):])
		if said := svc.Shards.Of(shard); said.NameOf == "" {
			e.Services.Set[svc.Key] = said
		}
		return false
	})
	s.workloads.byKey.WalkPrefix(prefix, func(k string, w *Workload) bool {
		e.Workloads.Set[workloadKeyOf(k, shard)] = w
		return false
	})
	return e
}
