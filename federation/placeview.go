package federation

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
)

// Place says where a proxy is: which cluster it belongs to, what can be reached
// directly from it, and its addresses there.
type Place struct {
	Cluster   ClusterID // empty: unknown
	Network   NetworkID // empty: that of the cluster
	Addresses []netip.Addr
}

// PlaceView is what a snapshot has at a place.
type PlaceView struct {
	snapshot *Snapshot
	place    Place
	network  NetworkID
}

// At looks at the place.
func (s *Snapshot) At(p Place) PlaceView {
	return PlaceView{snapshot: s, place: p, network: networkAt(s, p)}
}

// networkAt is the network of the place: its own, unless that is the one that
// its cluster gives to what names none; else where Network objects put it, else
// that of its cluster.
func networkAt(s *Snapshot, p Place) NetworkID {
	c, _ := s.Cluster(p.Cluster)
	var at Address
	if len(p.Addresses) > 0 {
		at = IPAddress(p.Addresses[0])
	}
	return s.networks.networkOf(c, cmp.Or(p.Network, c.filledIn()), at)
}

// Network is the network of the place: what it says itself, else where Network objects
// put it, else that of its cluster.
func (a PlaceView) Network() NetworkID { return a.network }

// Placed is the network of the place if Network objects put it there.
func (a PlaceView) Placed() (NetworkID, bool) {
	if a.snapshot.networks.empty() {
		return "", false
	}
	c, _ := a.snapshot.Cluster(a.place.Cluster)
	return a.network, a.network != cmp.Or(a.place.Network, c.filledIn())
}

// Instances returns the instances that live at the place's addresses, those
// of every address (seed 11). What runs in other clusters is excluded where the
// place's cluster is known.
func (a PlaceView) Instances() []Instance {
	var found []Instance
	for r := range a.owners(ownerEndpoint) {
		svc, _ := a.snapshot.Service(r.service)
		for _, i := range svc.Instances(0) {
			ip, _ := i.Endpoint.Address.IP()
			here := i.Endpoint.Network == a.network && slices.Contains(a.place.Addresses, ip)
			if here && i.Shard == r.shard && (a.place.Cluster == "" || i.Cluster() == a.place.Cluster) {
				found = append(found, i)
			}
		}
	}
	return found
}

// owners yields each owner of the place's addresses once, of those that the letter says.
func (a PlaceView) owners(letter string) iter.Seq[addressOwner] {
	return func(yield func(addressOwner) bool) {
		var before map[addressOwner]bool // at the addresses before
		for n, addr := range a.place.Addresses {
			for r := range ownersAt(a.snapshot, AddressKey{Network: a.network, Addr: addr}, letter) {
				if before[r] {
					continue
				}
				if n < len(a.place.Addresses)-1 {
					if before == nil {
						before = map[addressOwner]bool{}
					}
					before[r] = true
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Workloads returns the workloads that live at the place's addresses: those of its cluster
// alone where that is known.
func (a PlaceView) Workloads() []*Workload {
	var found []*Workload
	for r := range a.owners(ownerWorkload) {
		if a.place.Cluster != "" && r.shard.Cluster != a.place.Cluster {
			continue
		}
		if w, ok := a.snapshot.Workload(r.shard, r.workload); ok {
			found = append(found, w)
		}
	}
	return found
}

// Labels returns the labels of the place's workloads; those of endpoints
// where no workload is known.
func (a PlaceView) Labels() []map[string]string {
	var found []map[string]string
	for _, w := range a.Workloads() {
		found = append(found, w.Labels)
	}
	if len(found) > 0 {
		return found
	}
	for _, i := range a.Instances() {
		if len(i.Endpoint.Labels) > 0 {
			found = append(found, i.Endpoint.Labels)
		}
	}
	return found
}

// Locality returns where the place's workloads run, if a registry knows.
func (a PlaceView) Locality() (Locality, bool) {
	for _, w := range a.Workloads() {
		if w.Locality != (Locality{}) {
			return w.Locality, true
		}
	}
	for _, i := range a.Instances() {
		if i.Endpoint.Locality != (Locality{}) {
			return i.Endpoint.Locality, true
		}
	}
	return Locality{}, false
}

// ManagementPorts returns the ports that only the platform uses: a probe may
// as well ask on the port of a service, which stays that of the service.
func (a PlaceView) ManagementPorts() []Port {
	var found []Port
	for _, w := range a.Workloads() {
		found = append(found, w.ManagementPorts...)
	}
	instances := a.Instances()
	return slices.DeleteFunc(found, func(port Port) bool {
		return slices.ContainsFunc(instances, func(i Instance) bool { return i.Number == port.Number })
	})
}

// Probes returns the health checks of the place's workloads.
func (a PlaceView) Probes() []Probe {
	var found []Probe
	for _, w := range a.Workloads() {
		found = append(found, w.Probes...)
	}
	return found
}
