package federation

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// Automatic VIPs are those under which callers know services that their own
// cluster does not have. They come of the name alone, so that nobody has to
// remember them: IPv4 from 240.241.0.0 to 240.255.255.255, beside the range of
// those that are allotted to ServiceEntries, and IPv6 from 2001:2:0:1::/64. Two
// services may have the same IPv4 address; then it is the one's that comes first.
const automaticSlots = 15 << 16

// AutomaticVIPs returns the automatic VIPs of the service, IPv4 first.
func (k ServiceKey) AutomaticVIPs() [2]netip.Addr {
	digest := sha256.Sum256([]byte(k.sortKey()))
	slot := binary.BigEndian.Uint32(digest[:4])%automaticSlots + 241<<16
	v4 := [4]byte{240, byte(slot >> 16), byte(slot >> 8), byte(slot)}
	v6 := [16]byte{0x20, 0x01, 0, 2, 0, 0, 0, 1}
	copy(v6[8:], digest[8:16])
	return [2]netip.Addr{netip.AddrFrom4(v4), netip.AddrFrom16(v6)}
}

// The addresses that the hub allocates to ServiceEntries without addresses.
var (
	allocatedIPv4 = netip.MustParsePrefix("240.240.0.0/16")
	allocatedIPv6 = netip.MustParsePrefix("2001:2::/112")
)

// IsAllocatedVIP reports whether the address is from the ranges of which the hub
// allocates VIPs. Only callers whose DNS requests are captured learn of them.
func IsAllocatedVIP(vip netip.Addr) bool {
	return allocatedIPv4.Contains(vip) || allocatedIPv6.Contains(vip)
}

// IsAutomatic reports whether the hub itself gave the VIP to the service: no cluster
// says that the service has it, and no ServiceEntry names an address outside of the
// hub's ranges. In these ranges the configuration keeps what entries name and what is
// allocated apart.
func (s *Service) IsAutomatic(vip netip.Addr) bool {
	for key, shard := range s.Shards.All() {
		for _, p := range shard.VIPs {
			if p.IsSingleIP() && p.Addr().Unmap() == vip && (!key.Provider.OfConfiguration() || !IsAllocatedVIP(vip)) {
				return false
			}
		}
	}
	return true
}

// HasAutomaticVIPs reports whether callers of other clusters know the service by
// automatic VIPs: it is of the mesh, and the proxy chooses its endpoint.
func (s *Service) HasAutomaticVIPs() bool {
	return !s.MeshExternal && s.Resolution != Passthrough && !s.IsDynamic()
}
