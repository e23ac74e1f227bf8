package clusters

import (
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/internal/metrics"
	"isthmus.dev/isthmus/registries"
)

// Counters are what the API shows of clusters beside their snapshots.
func (c *Clusters) Counters() graph.Counters { return counters{c.Supervisor, c.usages} }

// counters give the API what is not part of a snapshot.
type counters struct {
	*registries.Supervisor
	*usages
}

// Counters is part of graph.Counters.
func (c counters) Counters(id federation.ClusterID) (lastEvent, lastSync time.Time) {
	return c.Activity(id)
}

// usages are what the hub keeps of each cluster that it reads.
type usages struct {
	metrics *metrics.Registries
	latest  sync.Map // federation.ClusterID → usage
}

type usage struct {
	used   federation.Usage
	limits federation.Limits
}

// of returns where a registry tells what it keeps of its cluster.
func (u *usages) of(id federation.ClusterID, limits federation.Limits) func(federation.Usage) {
	return func(used federation.Usage) {
		u.metrics.Used(id, used, limits)
		u.latest.Store(id, usage{used, limits})
	}
}

// forget is for registries that end.
func (u *usages) forget(id federation.ClusterID) { u.latest.Delete(id) }

// Usage is part of graph.Counters.
func (u *usages) Usage(id federation.ClusterID) (federation.Usage, federation.Limits, bool) {
	found, ok := u.latest.Load(id)
	of, _ := found.(usage)
	return of.used, of.limits, ok
}
