package federation

import (
	"iter"

	"isthmus.dev/isthmus/internal/smallmap"
)

// Reader reads a snapshot and notes what was read. It is for one goroutine.
type Reader struct {
	snapshot *Snapshot
	deps     Deps
	hidden   map[ObjectKey]bool // objects that do not exist for it
	cluster  ClusterID          // objects for proxies of other clusters alone do not exist for it either
}

// Read begins a noted reading of the snapshot.
func (s *Snapshot) Read() *Reader { return &Reader{snapshot: s} }

// Deps returns what was read. The reading is over with it.
func (r *Reader) Deps() Deps { return r.deps }

// Spec returns the service for a look at everything but its endpoints and
// accounts.
func (r *Reader) Spec(key ServiceKey) (*Service, bool) { return r.service(key, ReasonSpec) }

// Endpoints returns the service for a look at everything, endpoints included.
func (r *Reader) Endpoints(key ServiceKey) (*Service, bool) {
	return r.service(key, ReasonSpec|ReasonEndpoints)
}

// Accounts returns the service for a look at its accounts and spec.
func (r *Reader) Accounts(key ServiceKey) (*Service, bool) {
	return r.service(key, ReasonSpec|ReasonAccounts)
}

func (r *Reader) service(key ServiceKey, reasons Reason) (*Service, bool) {
	r.deps.noteService(key, reasons)
	return r.snapshot.Service(key)
}

// SpecsOnPort yields the services that have a TCP-based port of that number,
// for a look at their specs.
func (r *Reader) SpecsOnPort(number uint16) iter.Seq[*Service] {
	smallmap.Add(&r.deps.Ports, number)
	return func(yield func(*Service) bool) {
		for svc := range r.snapshot.services.OnPort(number) {
			r.deps.noteService(svc.Key, ReasonSpec)
			if !yield(svc) {
				return
			}
		}
	}
}

// Specs yields every service for a look at its spec. What reads them is computed
// again with every spec that changes.
func (r *Reader) Specs() iter.Seq[*Service] {
	r.deps.AllSpecs = true
	return r.snapshot.Services().All()
}

// ByHostname returns the services of that hostname, for a look at their specs.
func (r *Reader) ByHostname(host Hostname) []*Service {
	smallmap.Add(&r.deps.Hostnames, host)
	found := r.snapshot.ByHostname(host)
	for _, svc := range found {
		r.deps.noteService(svc.Key, ReasonSpec)
	}
	return found
}

// Cluster is Snapshot.Cluster, noted.
func (r *Reader) Cluster(id ClusterID) (*Cluster, bool) {
	smallmap.Add(&r.deps.Clusters, id)
	return r.snapshot.Cluster(id)
}

// Settings is Snapshot.Settings, noted.
func (r *Reader) Settings() Settings {
	r.deps.Settings = true
	return r.snapshot.Settings()
}

// For has the reader see objects for proxies of the cluster alone, beside those for all
// proxies; before, and for the empty cluster, it sees only these. For AnyCluster it sees the
// objects of all clusters.
func (r *Reader) For(id ClusterID) *Reader {
	r.cluster = id
	return r
}

// sees reports whether the object exists for the reader.
func (r *Reader) sees(o *Object) bool {
	return (o.Key.Cluster == "" || r.cluster == AnyCluster || o.Key.Cluster == r.cluster) && !r.hidden[o.Key]
}

// Object is Snapshot.Object, noted; that for all proxies comes first.
func (r *Reader) Object(key ObjectKey) (*Object, bool) {
	smallmap.Add(&r.deps.Objects, key)
	if o, found := r.snapshot.Object(key); found && r.sees(o) {
		return o, true
	}
	if key.Cluster != "" || r.cluster == "" {
		return nil, false
	}
	key.Cluster = r.cluster
	return r.Object(key)
}
