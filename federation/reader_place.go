package federation

import "isthmus.dev/isthmus/internal/smallmap"

// What is derived of a proxy's own place is noted like everything else: when none
// of what was read changed, it is what it was (R32).

// NotedPlace is a PlaceView for a Reader.
type NotedPlace struct {
	reader *Reader
	place  Place
}

// At looks at the place.
func (r *Reader) At(p Place) NotedPlace { return NotedPlace{reader: r, place: p} }

func (a NotedPlace) view() PlaceView { return a.reader.snapshot.At(a.place) }

// Instances is PlaceView.Instances, noted.
func (a NotedPlace) Instances() []Instance {
	view, deps := a.view(), &a.reader.deps
	if a.place.Network == "" {
		a.notePlacement()
	}
	for _, addr := range a.place.Addresses {
		smallmap.Add(&deps.Addresses, AddressKey{Network: view.Network(), Addr: addr})
	}
	found := view.Instances()
	for _, i := range found {
		deps.noteService(i.Service.Key, ReasonSpec)
	}
	return found
}

// Registered is PlaceView.Registered, noted: a workload may come to one of the
// addresses in any network.
func (a NotedPlace) Registered(name WorkloadKey) (Registration, bool) {
	smallmap.Add(&a.reader.deps.Clusters, a.place.Cluster)
	for _, addr := range a.place.Addresses {
		smallmap.Add(&a.reader.deps.Anywhere, addr.Unmap())
	}
	return a.view().Registered(name)
}

// Network is PlaceView.Network, noted.
func (a NotedPlace) Network() NetworkID {
	a.notePlacement()
	return a.view().Network()
}

// Placed is PlaceView.Placed, noted.
func (a NotedPlace) Placed() (NetworkID, bool) {
	a.notePlacement()
	return a.view().Placed()
}

// notePlacement notes what decides in which network a place is: its cluster, and
// all Network objects.
func (a NotedPlace) notePlacement() {
	smallmap.Add(&a.reader.deps.Clusters, a.place.Cluster)
	_ = a.reader.Objects().Select(NetworkKind, func(*Object) bool { return true })
}
