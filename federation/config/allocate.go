package config

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/external"
)

// Automatic VIPs come from 240.240.0.0/16 and from the first 65,536 addresses of
// 2001:2::/48, the ranges that Istio uses too.
const (
	vipSlots   = 1 << 16
	firstSlot  = 1            // not the address of the network
	lastSlot   = vipSlots - 2 // nor that of its broadcast
	slotsInUse = lastSlot - firstSlot + 1
)

func vips(slot uint32) (v4, v6 netip.Addr) {
	high, low := byte(slot>>8), byte(slot)
	return netip.AddrFrom4([4]byte{240, 240, high, low}),
		netip.AddrFrom16([16]byte{0x20, 0x01, 0x00, 0x02, 14: high, 15: low})
}

// Allocate finds VIPs for the wanted services that have none yet: one IPv4 and
// one IPv6 address each, the same ones on every hub that allocates from the same state.
// The result has the new ones only; a service is missing when the range is full.
func Allocate(existing map[federation.ServiceKey][]netip.Addr, wanted []federation.ServiceKey) map[federation.ServiceKey][]netip.Addr {
	taken := map[netip.Addr]bool{}
	for _, addresses := range existing {
		for _, ip := range addresses {
			taken[ip.Unmap()] = true
		}
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(k federation.ServiceKey) bool { return len(existing[k]) > 0 })
	return allocate(func(ip netip.Addr) bool { return taken[ip] }, missing)
}

func allocate(taken func(netip.Addr) bool, wanted []federation.ServiceKey) map[federation.ServiceKey][]netip.Addr {
	out := map[federation.ServiceKey][]netip.Addr{}
	now := map[uint32]bool{}
	for _, key := range slices.SortedFunc(slices.Values(wanted), federation.ServiceKey.Compare) {
		if _, done := out[key]; done {
			continue
		}
		digest := sha256.Sum256([]byte(serviceSortKey(key)))
		start := binary.BigEndian.Uint32(digest[:4])
		for i := range uint32(slotsInUse) {
			slot := firstSlot + (start%slotsInUse+i)%slotsInUse
			v4, v6 := vips(slot)
			if now[slot] || taken(v4) || taken(v6) {
				continue
			}
			now[slot] = true
			out[key] = []netip.Addr{v4, v6}
			break
		}
	}
	return out
}

func allocationKey(key federation.ServiceKey) federation.ObjectKey {
	return federation.ObjectKey{
		Group: federation.MeshGroup, Kind: federation.AllocationKind.Name, Namespace: key.Namespace,
		Name: string(key.Hostname),
	}
}

// NewAllocation is the object that keeps the VIPs of a service.
func NewAllocation(key federation.ServiceKey, addresses []netip.Addr) *Object {
	o, _ := newInternal(allocationKey(key), federation.Allocation{Addresses: addresses}) // cannot fail: addresses alone
	return o
}

// MissingAllocations are the changes that give VIPs to services that should have
// one and have none, or of whose VIPs a ServiceEntry of another host names one, and
// that free those of services without any ServiceEntry.
// A hub that can write to the store writes them, best in the commit that made them
// necessary; nothing is missing any more once they are part of the state.
func (s *State) MissingAllocations() []Change {
	var changes []Change
	var wanted []federation.ServiceKey
	s.unallocated.Walk(func(_ string, key federation.ServiceKey) bool {
		if len(s.AllocatedTo(key)) > 0 && !s.hasEntry(key) {
			changes = append(changes, Change{Key: allocationKey(key)})
		} else {
			wanted = append(wanted, key)
		}
		return false
	})
	found := allocate(s.isTaken, wanted)
	for _, key := range wanted {
		if addresses := found[key]; addresses != nil {
			changes = append(changes, Change{Key: allocationKey(key), Object: NewAllocation(key, addresses)})
		}
	}
	return changes
}

func (s *State) isTaken(ip netip.Addr) bool {
	taken := false
	note := func(string, struct{}) bool { taken = true; return true }
	s.taken.WalkPrefix(takenPrefix(ip), note)
	s.chosen.WalkPrefix(takenPrefix(ip), note)
	return taken
}

func (s *State) hasEntry(key federation.ServiceKey) bool {
	found := false
	s.entries.WalkPrefix(memberSortKey(key, ""), func(string, *external.Reading) bool { found = true; return true })
	return found
}

// AllocatedTo returns the automatic VIPs of the service.
func (s *State) AllocatedTo(key federation.ServiceKey) []netip.Addr {
	h, _ := s.objects.Get(objectSortKey(allocationKey(key)))
	return h.allocation()
}

func (h *held) allocation() []netip.Addr {
	if h == nil {
		return nil
	}
	return h.Addresses
}

// PreviewedState is what changes come to before anybody has made them.
type PreviewedState struct {
	State   *State
	Edit    federation.Edit
	Missing []Change // allocations that they make necessary, made already in the state
}

// isLeftOver reports whether the service has an allocation and no ServiceEntry here.
func (s *State) isLeftOver(key federation.ServiceKey) bool {
	_, unallocated := s.unallocated.Get(serviceSortKey(key))
	return unallocated && len(s.AllocatedTo(key)) > 0 && !s.hasEntry(key)
}

// Preview is Next with the allocations that it makes necessary already made: what
// the mesh will be once they are written, too. It frees the VIPs of services that
// the changes themselves end. Others that look left over may be those of a source
// that only another hub reads.
func (s *State) Preview(changes []Event, revision int64) PreviewedState {
	after, edit := s.Next(changes, revision)
	missing := slices.DeleteFunc(after.MissingAllocations(),
		func(c Change) bool { return c.Object == nil && s.isLeftOver(allocatedFor(c.Key)) })
	if len(missing) == 0 {
		return PreviewedState{State: after, Edit: edit}
	}
	all := slices.Clone(changes)
	for _, c := range missing {
		old, _ := after.Object(c.Key)
		all = append(all, Event{Old: old, New: c.Object})
	}
	after, edit = s.next(all, revision, after)
	return PreviewedState{State: after, Edit: edit, Missing: missing}
}

func (d *draft) allocated(key federation.ServiceKey) []netip.Addr {
	h, _ := d.objects.Get(objectSortKey(allocationKey(key)))
	return h.allocation()
}

func allocatedFor(key federation.ObjectKey) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(key.Name), Namespace: key.Namespace}
}

// EndedSince are the changes that free the VIPs of services whose last ServiceEntry
// this hub has seen go since the other state.
func (s *State) EndedSince(before *State) []Change {
	var ended []Change
	for _, c := range s.MissingAllocations() {
		if key := allocatedFor(c.Key); c.Object == nil && len(before.AllocatedTo(key)) > 0 && !before.isLeftOver(key) {
			ended = append(ended, c)
		}
	}
	return ended
}

// allot notes which addresses are in use.
func (d *draft) allot(key federation.ObjectKey, old, now *held) {
	service := allocatedFor(key)
	for _, ip := range old.allocation() {
		d.taken.Delete(takenSortKey(ip, service))
	}
	for _, ip := range now.allocation() {
		d.taken.Set(takenSortKey(ip, service), struct{}{})
	}
	d.touched[service] = true
}
