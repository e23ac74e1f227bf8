package xds

import (
	"slices"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/xds/envoy"
)

// madeFrom is what resources of a group were built from, by name.
type madeFrom struct {
	objects  map[string][]federation.ObjectKey
	services map[string][]federation.ServiceKey
}

// causesIn finds the configuration objects of the snapshot that a resource of a group
// was built from, as the status of an object counts them. It reads each group once, when
// it is first needed, and does not wait for builds.
func causesIn(latest *federation.Snapshot) func(of *group, name string) []federation.ObjectKey {
	var mu sync.Mutex
	r, read := latest.Read(), map[*group]madeFrom{}
	return func(of *group, name string) []federation.ObjectKey {
		mu.Lock()
		defer mu.Unlock()
		from, known := read[of]
		if !known {
			from = madeFromIn(of.index)
			read[of] = from
		}
		return from.causes(of, name, latest, r)
	}
}

func (m madeFrom) causes(of *group, name string, latest *federation.Snapshot, r *federation.Reader) []federation.ObjectKey {
	var found []federation.ObjectKey
	for _, key := range m.objects[name] {
		if o, exists := latest.Object(key); exists && envoy.Concerns(o, of.facet, r) {
			found = append(found, key)
		}
	}
	if of.kind.Has(envoy.Destinations) {
		for _, key := range m.services[name] {
			if svc, exists := latest.Service(key); exists && envoy.StandsFor(name, of.facet, svc, latest) {
				found = append(found, federation.ObjectsBehind(latest, svc)...)
			}
		}
	}
	slices.SortFunc(found, federation.ObjectKey.Compare)
	return slices.Compact(found)
}

// madeFromIn reads the index of a group.
func madeFromIn(index *derive.Index[string]) madeFrom {
	m := madeFrom{map[string][]federation.ObjectKey{}, map[string][]federation.ServiceKey{}}
	index.Objects(func(key federation.ObjectKey, name string) { // a resource and its parts
		m.objects[resourceOf(name)] = append(m.objects[resourceOf(name)], key)
	})
	index.Services(func(key federation.ServiceKey, name string) { m.services[name] = append(m.services[name], key) })
	return m
}

// madeBy is the group that built the resource; nil: none did.
func (r *resource) madeBy() *group {
	if r == nil {
		return nil
	}
	return r.home
}
