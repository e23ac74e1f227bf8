package config

import (
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
)

// choose notes which addresses of the range the entry of that name names itself.
func (d *draft) choose(name string, old, now *held) {
	for _, key := range old.services() {
		for _, ip := range allocatable(old.Entry) {
			d.chosen.Delete(takenSortKey(ip, key) + nul + name)
			d.touchAllocated(ip)
		}
	}
	for _, key := range now.services() {
		for _, ip := range allocatable(now.Entry) {
			d.chosen.Set(takenSortKey(ip, key)+nul+name, struct{}{})
			d.touchAllocated(ip)
		}
	}
}

// touchAllocated has the services recomputed that the address is allocated to.
func (d *draft) touchAllocated(ip netip.Addr) {
	d.taken.WalkPrefix(takenPrefix(ip), func(at string, _ struct{}) bool {
		d.touched[serviceTaking(at)] = true
		return false
	})
}

// allocatable are the addresses of the entry that the hub could also allocate.
func allocatable(r *external.Reading) []netip.Addr {
	var found []netip.Addr
	for _, vip := range r.Addresses() {
		if vip.IsSingleIP() && federation.IsAllocatedVIP(vip.Addr().Unmap()) {
			found = append(found, vip.Addr().Unmap())
		}
	}
	return found
}

// unchosen are the allocated addresses without those that an entry of another
// service names: a chosen address comes first (ADR 0059).
func (d *draft) unchosen(key federation.ServiceKey, allocated []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(allocated), func(ip netip.Addr) bool {
		elsewhere := false
		d.chosen.WalkPrefix(takenPrefix(ip), func(at string, _ struct{}) bool {
			elsewhere = !strings.HasPrefix(at, takenSortKey(ip, key)+nul)
			return elsewhere
		})
		return elsewhere
	})
}
