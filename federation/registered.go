package federation

import (
	"iter"
	"net/netip"
	"strings"

	"isthmus.dev/isthmus/internal/btree"
)

// Registration is what a registry knows of a workload that is in its cluster.
type Registration struct {
	Workload *Workload
	Network  NetworkID // in which it is
}

// Registered returns the registry's entry of the workload at the place, whatever
// network the place names: the one of that name in its cluster if it lives at one
// of the addresses, else the only one that lives at them.
func (a PlaceView) Registered(name WorkloadKey) (Registration, bool) {
	c, attached := a.snapshot.Cluster(a.place.Cluster)
	if !attached {
		return Registration{}, false
	}
	shard := ShardKey{Cluster: c.ID, Provider: c.Spec.Provider}
	if w, known := a.snapshot.Workload(shard, name); known && w.livesAt(a.place.Addresses) {
		return a.registration(c, w), true
	}
	return a.onlyRegistered(c)
}

// onlyRegistered finds the only workload at the addresses.
func (a PlaceView) onlyRegistered(c *Cluster) (found Registration, ok bool) {
	for _, addr := range a.place.Addresses {
		for _, w := range WorkloadsAnywhere(a.snapshot, c.ID, addr) {
			if ok && found.Workload != w {
				return Registration{}, false // several: pods of a node's own network
			}
			found, ok = a.registration(c, w), true
		}
	}
	return found, ok
}

// WorkloadsAnywhere yields those of the cluster at the address in every network, since
// it is not known in which the address is. A network of which only workloads speak
// counts, too.
func WorkloadsAnywhere(s *Snapshot, id ClusterID, addr netip.Addr) iter.Seq2[WorkloadKey, *Workload] {
	return func(yield func(WorkloadKey, *Workload) bool) {
		for network := range inhabited(s.addresses) {
			for r := range ownersAt(s, AddressKey{Network: network, Addr: addr.Unmap()}, ownerWorkload) {
				if r.shard.Cluster != id {
					continue
				}
				if w, _ := s.Workload(r.shard, r.workload); !yield(r.workload, w) {
					return
				}
			}
		}
	}
}

// inhabited yields the networks in which anything lives. It looks at one address of
// each.
func inhabited(addresses btree.Map[struct{}]) iter.Seq[NetworkID] {
	return func(yield func(NetworkID) bool) {
		for last, more := "", true; more; {
			more = false
			for k := range addresses.From(last) {
				network, _, _ := strings.Cut(k, nul)
				if !yield(NetworkID(network)) {
					return
				}
				last, more = network+afterNul, true
				break
			}
		}
	}
}

// afterNul comes after all keys that begin with the same text and nul.
const afterNul = "\x01"

func (a PlaceView) registration(c *Cluster, w *Workload) Registration {
	var at Address
	if len(w.Addresses) > 0 {
		at = IPAddress(w.Addresses[0])
	}
	return Registration{Workload: w, Network: a.snapshot.networks.networkOf(c, w.Network, at)}
}

func (w *Workload) livesAt(addresses []netip.Addr) bool {
	for _, a := range w.Addresses {
		for _, at := range addresses {
			if a.Unmap() == at.Unmap() {
				return true
			}
		}
	}
	return false
}
