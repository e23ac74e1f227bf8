// Package clientaddr groups callers by their address, and limits their log lines.
package clientaddr

import (
	"net"
	"net/netip"
)

// ipv6Bits is the network that one IPv6 host usually has for itself.
const ipv6Bits = 64

// Of returns the source of an address: the address itself for IPv4, its /64 for IPv6. The zero value means
// callers without an address, such as those of a unix socket.
func Of(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = ipv6Bits
	}
	prefix, err := address.Prefix(bits)
	if err != nil || !address.IsValid() {
		return netip.Prefix{}
	}
	return prefix
}

// Text is an address as logs show it: "unix" for callers of a unix socket, who have none.
func Text(address netip.Addr) string {
	if !address.IsValid() {
		return "unix"
	}
	return address.String()
}

// OfNet returns the source of a connection's remote address.
func OfNet(address net.Addr) netip.Prefix {
	if tcp, is := address.(*net.TCPAddr); is {
		return Of(tcp.AddrPort().Addr())
	}
	return netip.Prefix{}
}
