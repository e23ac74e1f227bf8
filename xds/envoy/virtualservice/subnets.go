package virtualservice

import (
	"fmt"
	"net/netip"

	networking "istio.io/api/networking/v1"
)

// InSubnets reports whether the addresses are in one of the subnets, where there are any;
// unknown ones are in none.
func InSubnets(subnets []string, addresses netip.Prefix) (bool, error) {
	in := len(subnets) == 0
	for _, text := range subnets {
		subnet, err := ParseSubnet(text)
		if err != nil {
			return false, err
		}
		in = in || addresses.IsValid() && Within(addresses, subnet)
	}
	return in, nil
}

// ParseSubnet reads a CIDR block, or an address as a block of its own.
func ParseSubnet(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return Single(addr), nil
	}
	subnet, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a subnet", text)
	}
	return subnet.Masked(), nil
}

// Single is the block of one address.
func Single(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

// Within reports whether all of the one block is in the other.
func Within(part, whole netip.Prefix) bool {
	return whole.Bits() <= part.Bits() && whole.Contains(part.Addr())
}

// DestinationSubnets are those of all routes for connections.
func DestinationSubnets(spec *networking.VirtualService) []string {
	var all []string
	for _, route := range spec.GetTls() {
		for _, match := range route.GetMatch() {
			all = append(all, match.GetDestinationSubnets()...)
		}
	}
	for _, route := range spec.GetTcp() {
		for _, match := range route.GetMatch() {
			all = append(all, match.GetDestinationSubnets()...)
		}
	}
	return all
}
