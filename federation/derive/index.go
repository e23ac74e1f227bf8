package derive

import (
	"iter"
	"net/netip"
	"strings"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/smallmap"
)

// Index finds what was computed from a thing of the snapshot, by name. It is safe for
// concurrent use; Affected only waits for a caller that replaces an entry.
type Index[N comparable] struct {
	mu sync.RWMutex
	// outer is called before the first and after the last value that was computed from
	// an object. Nil: the index stands alone.
	outer func(o federation.ObjectKey, read bool)
	readers[N]
}

// readers are the names by what they read.
type readers[N comparable] struct {
	services  map[federation.ServiceKey]smallmap.Map[N, federation.Reason]
	ports     sets[uint16, N]
	vips      sets[netip.Addr, N]
	hostnames sets[federation.Hostname, N]
	addresses sets[federation.AddressKey, N]
	anywhere  sets[netip.Addr, N]
	clusters  sets[federation.ClusterID, N]
	objects   sets[federation.ObjectKey, N]
	named     sets[federation.ObjectName, N]
	hosts     sets[federation.ObjectName, N]
	sets      sets[federation.ObjectSet, N]
	networks  sets[federation.NetworkID, N]
	keySets   sets[federation.KeySource, N]
	problems  sets[federation.ProblemSubject, N]
	settings  smallmap.Set[N]
	labels    smallmap.Set[N]
	specs     smallmap.Set[N] // of all services
}

// NewIndex returns an empty index.
func NewIndex[N comparable]() *Index[N] {
	return &Index[N]{readers: readers[N]{
		services: map[federation.ServiceKey]smallmap.Map[N, federation.Reason]{}, ports: sets[uint16, N]{}, vips: sets[netip.Addr, N]{},
		hostnames: sets[federation.Hostname, N]{}, addresses: sets[federation.AddressKey, N]{}, anywhere: sets[netip.Addr, N]{},
		clusters: sets[federation.ClusterID, N]{}, objects: sets[federation.ObjectKey, N]{}, named: sets[federation.ObjectName, N]{},
		hosts: sets[federation.ObjectName, N]{}, sets: sets[federation.ObjectSet, N]{}, networks: sets[federation.NetworkID, N]{},
		keySets: sets[federation.KeySource, N]{}, problems: sets[federation.ProblemSubject, N]{},
	}}
}

// Within returns an empty index that the outer index knows by its name: outer.OfObject
// returns the names of those indexes that have something computed from the object.
func Within[O, N comparable](outer *Index[O], name O) *Index[N] {
	x := NewIndex[N]()
	x.outer = func(o federation.ObjectKey, read bool) {
		outer.mu.Lock()
		defer outer.mu.Unlock()
		outer.objects.put(o, name, read)
	}
	return x
}

// sets are the names by a thing that they read.
type sets[K, N comparable] map[K]smallmap.Set[N]

func (s sets[K, N]) replace(name N, old, now smallmap.Set[K]) {
	for key, read := range differences(old, now) {
		s.put(key, name, read)
	}
}

// differences yields what is in one of the sets only, and whether that is the new one.
func differences[K comparable](old, now smallmap.Set[K]) iter.Seq2[K, bool] {
	return func(yield func(K, bool) bool) {
		for key := range old.All() {
			if !now.Has(key) && !yield(key, false) {
				return
			}
		}
		for key := range now.All() {
			if !old.Has(key) && !yield(key, true) {
				return
			}
		}
	}
}

func (s sets[K, N]) put(key K, name N, read bool) {
	if read {
		s.add(key, name)
	} else {
		s.remove(key, name)
	}
}

func (s sets[K, N]) add(key K, name N) {
	names, known := s[key]
	smallmap.Add(&names, name)
	if !known {
		s[key] = names
	}
}

func (s sets[K, N]) remove(key K, name N) {
	names := s[key]
	names.Delete(name)
	if names.Len() == 0 {
		delete(s, key)
	}
}

// Replace notes that the name was computed from what now has, and no longer from old.
func (x *Index[N]) Replace(name N, old, now federation.Deps) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replaceServices(name, old.Services, now.Services)
	x.ports.replace(name, old.Ports, now.Ports)
	x.vips.replace(name, old.VIPs, now.VIPs)
	x.hostnames.replace(name, old.Hostnames, now.Hostnames)
	x.addresses.replace(name, old.Addresses, now.Addresses)
	x.anywhere.replace(name, old.Anywhere, now.Anywhere)
	x.clusters.replace(name, old.Clusters, now.Clusters)
	x.replaceObjects(name, old.Objects, now.Objects)
	x.named.replace(name, old.Names, now.Names)
	x.hosts.replace(name, old.Hosts, now.Hosts)
	x.sets.replace(name, old.Sets, now.Sets)
	x.networks.replace(name, old.Networks, now.Networks)
	x.keySets.replace(name, old.KeySets, now.KeySets)
	x.problems.replace(name, old.Problems, now.Problems)
	replaceFlag(&x.settings, name, now.Settings)
	replaceFlag(&x.labels, name, now.Labels)
	replaceFlag(&x.specs, name, now.AllSpecs)
}

func replaceFlag[N comparable](names *smallmap.Set[N], name N, now bool) {
	if now {
		smallmap.Add(names, name)
	} else {
		names.Delete(name)
	}
}

func (x *Index[N]) replaceServices(name N, old, now smallmap.Map[federation.ServiceKey, federation.Reason]) {
	for key := range old.All() {
		if now.Has(key) {
			continue
		}
		names := x.services[key]
		names.Delete(name)
		if names.Len() == 0 {
			delete(x.services, key)
		}
	}
	for key, reasons := range now.All() {
		if known, _ := old.Get(key); known == reasons {
			continue
		}
		names := x.services[key]
		names.Put(name, reasons)
		x.services[key] = names
	}
}

func (x *Index[N]) replaceObjects(name N, old, now smallmap.Set[federation.ObjectKey]) {
	if x.outer == nil {
		x.objects.replace(name, old, now)
		return
	}
	for key, read := range differences(old, now) {
		if read && x.objects[key].Len() == 0 {
			x.outer(key, true)
		}
		x.objects.put(key, name, read)
		if x.objects[key].Len() == 0 {
			x.outer(key, false)
		}
	}
}

// Close removes the index from the one that it is within.
func (x *Index[N]) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.objects {
		if x.outer != nil {
			x.outer(key, false)
		}
	}
}

// isAbout reports whether an object of that name is about the hostname: by this name, or by a
// wildcard for whole labels.
func isAbout(name, host string) bool {
	return name == "*" || name == host || strings.HasPrefix(name, "*.") && strings.HasSuffix(host, name[1:])
}
