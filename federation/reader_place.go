package federation

import "isthmus.dev/isthmus/internal/smallmap"

// What is derived of a proxy's own place is noted like everything else: when none
// of what was read changed, it is what it was (R32).

// NotedSite is a Site for a Reader.
type NotedSite struct {
	reader *Reader
	place  Place
}

// At looks at the place.
func (r *Reader) At(p Place) NotedSite { return NotedSite{reader: r, place: p} }

func (a NotedSite) site() PlaceView { return a.reader.snapshot.At(a.place) }

// Instances is Site.Instances, noted.
func (a NotedSite) Instances() []Instance {
	site, deps := a.site(), &a.reader.deps
	if a.place.Network == "" {
		a.notePlacement()
	}
	for _, addr := range a.place.Addresses {
		smallmap.Add(&deps.Addresses, AddressKey{Network: site.Network(), Addr: addr})
	}
	found := site.Instances()
	for _, i := range found {
		deps.noteService(i.Service.Key, ReasonSpec)
	}
	return found
}

// Registered is Site.Registered, noted: a workload may come to one of the
// addresses in any network.
func (a NotedSite) Registered(name WorkloadKey) (Registration, bool) {
	smallmap.Add(&a.reader.deps.Clusters, a.place.Cluster)
	for _, addr := range a.place.Addresses {
		smallmap.Add(&a.reader.deps.Anywhere, addr.Unmap())
	}
	return a.site().Registered(name)
}

// Network is Site.Network, noted.
func (a NotedSite) Network() NetworkID {
	a.notePlacement()
	return a.site().Network()
}

// Placed is Site.Placed, noted.
func (a NotedSite) Placed() (NetworkID, bool) {
	a.notePlacement()
	return a.site().Placed()
}

// notePlacement notes what decides in which network a place is: its cluster, and
// all Network objects.
func (a NotedSite) notePlacement() {
	smallmap.Add(&a.reader.deps.Clusters, a.place.Cluster)
	_ = a.reader.Objects().Select(NetworkKind, func(*Object) bool { return true })
}
