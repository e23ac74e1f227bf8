package federation

import (
	"iter"
)

// Reader reads a snapshot and notes what was read. It is for one goroutine.
type Reader struct {
	snapshot *Snapshot
	deps     Deps
	hidden   map[ObjectKey]bool // objects that do not exist for it
}

// Read begins a noted reading of the snapshot.
func (s *Snapshot) Read() *Reader { return &Reader{snapshot: s} }

func note[K comparable](set *map[K]bool, key K) {
	if *set == nil {
		*set = map[K]bool{}
	}
	(*set)[key] = true
}

func (r *Reader) noteService(key ServiceKey, reasons Reason) {
	if r.deps.Services == nil {
		r.deps.Services = map[ServiceKey]Reason{}
	}
	r.deps.Services[key] |= reasons
}

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
	r.noteService(key, reasons)
	return r.snapshot.Service(key)
}

// SpecsOnPort yields the services that have a TCP-based port of that number,
// for a look at their specs.
func (r *Reader) SpecsOnPort(number uint16) iter.Seq[*Service] {
	note(&r.deps.Ports, number)
	return func(yield func(*Service) bool) {
		for svc := range r.snapshot.ServicesOnPort(number) {
			r.noteService(svc.Key, ReasonSpec)
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
	return r.snapshot.Services()
}

// ByHostname returns the services of that hostname, for a look at their specs.
func (r *Reader) ByHostname(host Hostname) []*Service {
	note(&r.deps.Hostnames, host)
	found := r.snapshot.ByHostname(host)
	for _, svc := range found {
		r.noteService(svc.Key, ReasonSpec)
	}
	return found
}

// InstancesAt is Snapshot.InstancesAt, noted.
func (r *Reader) InstancesAt(p Place) []Instance {
	r.noteAddresses(p)
	found := r.snapshot.InstancesAt(p)
	for _, i := range found {
		r.noteService(i.Service.Key, ReasonSpec)
	}
	return found
}

func (r *Reader) noteAddresses(p Place) {
	if p.Network == "" {
		r.notePlacement(p)
	}
	for _, addr := range p.Addresses {
		note(&r.deps.Addresses, AddressKey{Network: r.snapshot.NetworkOf(p), Addr: addr})
	}
}

// Cluster is Snapshot.Cluster, noted.
func (r *Reader) Cluster(id ClusterID) (*Cluster, bool) {
	note(&r.deps.Clusters, id)
	return r.snapshot.Cluster(id)
}

// Settings is Snapshot.Settings, noted.
func (r *Reader) Settings() Settings {
	r.deps.Settings = true
	return r.snapshot.Settings()
}

// Object is Snapshot.Object, noted.
func (r *Reader) Object(key ObjectKey) (*Object, bool) {
	note(&r.deps.Objects, key)
	if r.hidden[key] {
		return nil, false
	}
	return r.snapshot.Object(key)
}

// ObjectsNamed is Snapshot.ObjectsNamed, noted.
func (r *Reader) ObjectsNamed(kind Kind, name string) iter.Seq[*Object] {
	note(&r.deps.Names, ObjectName{kind, name})
	return noted(r, r.snapshot.ObjectsNamed(kind, name))
}

// ObjectsFor yields the objects of a kind that speak of the hostname, by name or
// by wildcard, the most specific first.
func (r *Reader) ObjectsFor(kind Kind, host Hostname) iter.Seq[*Object] {
	note(&r.deps.Hosts, ObjectName{kind, string(host)})
	return noted(r, func(yield func(*Object) bool) {
		for _, name := range Wildcards(host) {
			for o := range r.snapshot.ObjectsNamed(kind, name) {
				if !yield(o) {
					return
				}
			}
		}
	})
}

// ObjectsIn is Snapshot.ObjectsIn, noted.
func (r *Reader) ObjectsIn(kind Kind, namespace string) iter.Seq[*Object] {
	note(&r.deps.Sets, ObjectSet{kind, namespace})
	return noted(r, r.snapshot.ObjectsIn(kind, namespace))
}

// ObjectsOf is Snapshot.ObjectsOf, noted. What reads a whole kind is computed
// again with every object that is added.
func (r *Reader) ObjectsOf(kind Kind) iter.Seq[*Object] {
	note(&r.deps.Sets, ObjectSet{kind, AllNamespaces})
	return noted(r, r.snapshot.ObjectsOf(kind))
}

func noted(r *Reader, objects iter.Seq[*Object]) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for o := range objects {
			if r.hidden[o.Key] {
				continue
			}
			note(&r.deps.Objects, o.Key)
			if !yield(o) {
				return
			}
		}
	}
}
