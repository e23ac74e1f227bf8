package federation

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestK62RefusedRangesAreThoseOfThePolicy: what the policy refuses at every port is in the ranges,
// and nothing else. A proxy that cannot ask the policy decides the same.
func TestK62RefusedRangesAreThoseOfThePolicy(t *testing.T) {
	special := []string{
		"0.0.0.0", "0.0.0.1", "127.0.0.1", "127.255.255.255", "128.0.0.0", "169.254.0.0", "169.254.169.254", "169.255.0.0",
		"223.255.255.255", "224.0.0.1",
		"239.255.255.255", "240.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16", "192.0.0.192", "10.0.0.1", "::", "::1",
		"::2", "fe80::1", "fec0::1", "ff02::1",
		"fd00:ec2::254", "fd00:ec2::255", "2001:db8::1",
	}
	rapid.Check(t, func(t *rapid.T) {
		policy := AddressPolicy{AllowLoopback: rapid.Bool().Draw(t, "loopback")}
		ip := netip.MustParseAddr(rapid.SampledFrom(special).Draw(t, "special"))
		if rapid.Bool().Draw(t, "any") {
			ip, _ = netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), len(ip.AsSlice()), len(ip.AsSlice())).Draw(t, "ip"))
		}
		if ip.Is4In6() {
			return // no name needs these: the ranges have them all
		}
		refused := slices.ContainsFunc(policy.RefusedRanges(), func(r netip.Prefix) bool { return r.Contains(ip) })
		if why := policy.Refuse(ip, 0); (why != "") != refused {
			t.Fatalf("%s: the ranges refuse it: %t, the policy says %q", ip, refused, why)
		}
	})
}
