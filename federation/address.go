package federation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Address is where an endpoint listens: an IP address, a DNS name or the path
// of a unix socket. The zero value means that there is none.
type Address struct {
	ip   netip.Addr
	name string // DNS name, or socket path when unix
	unix bool
}

// IPAddress is an IP endpoint; an IPv4 address mapped into IPv6 is unmapped.
func IPAddress(ip netip.Addr) Address { return Address{ip: ip.Unmap()} }

var (
	errNotIP  = errors.New("not an IP address in its usual form")
	errZoneIP = errors.New("an IP address with a zone")
)

// ParseIP reads an IP address of a registry or of an object. It is strict: no leading zeros, no zone. An IPv4
// address mapped into IPv6 is unmapped.
func ParseIP(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return netip.Addr{}, errNotIP
	case ip.Zone() != "":
		return netip.Addr{}, errZoneIP
	}
	return ip.Unmap(), nil
}

// HostAddress is an endpoint that the proxy resolves by DNS.
func HostAddress(name string) Address { return Address{name: strings.ToLower(name)} }

// UnixAddress is a unix socket; its endpoint's ports are ignored (seed 6).
func UnixAddress(path string) Address { return Address{name: path, unix: true} }

// IP returns the IP address, if it is one.
func (a Address) IP() (netip.Addr, bool) { return a.ip, a.ip.IsValid() }

// Host returns the DNS name, if it is one.
func (a Address) Host() (string, bool) { return a.name, !a.unix && a.name != "" }

// Unix returns the socket path, if it is one.
func (a Address) Unix() (string, bool) { return a.name, a.unix }

// Compare orders IP addresses before names before sockets.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.ip.Compare(b.ip), cmp.Compare(a.name, b.name))
}

func (a Address) rank() int {
	switch {
	case a.unix:
		return 2
	case a.name != "":
		return 1
	}
	return 0
}

func (a Address) String() string {
	switch {
	case a.unix:
		return "unix:" + a.name
	case a.ip.IsValid():
		return a.ip.String()
	}
	return a.name
}

// MarshalText writes what String says.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads "unix:PATH", an IP address or a DNS name.
func (a *Address) UnmarshalText(text []byte) error {
	s := string(text)
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		*a = UnixAddress(path)
		return nil
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		*a = IPAddress(ip)
		return nil
	}
	if s == "" {
		return fmt.Errorf("reading an address: it is empty")
	}
	*a = HostAddress(s)
	return nil
}

// AddressPolicy says which addresses from outside may be offered to proxies. It
// is a pure value: Next applies it to endpoints and VIPs, internal/access
// applies it when the hub itself dials (reliability.md 4.8).
type AddressPolicy struct {
	AllowLoopback bool             // only serve --dev
	Own           []netip.AddrPort // the hub's own listeners; an unspecified address means every address
}

// Refuse returns why the address must not be used, or "". Port 0 means any.
func (p AddressPolicy) Refuse(ip netip.Addr, port uint16) string {
	ip = ip.Unmap()
	switch {
	case !ip.IsValid():
		return "is not an IP address"
	case ip.Zone() != "":
		return "has a zone"
	case ip.IsUnspecified():
		return "is the unspecified address"
	case ip.IsLoopback() && !p.AllowLoopback:
		return "is a loopback address"
	case ip.IsMulticast():
		return "is a multicast address"
	case ip.IsLinkLocalUnicast():
		return "is a link-local address"
	case ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is the broadcast address"
	case IsMetadataAddress(ip):
		return "is a cloud metadata address"
	}
	return p.refuseOwn(ip, port)
}

func (p AddressPolicy) refuseOwn(ip netip.Addr, port uint16) string {
	for _, own := range p.Own {
		same := own.Addr().Unmap() == ip || own.Addr().IsUnspecified() && ip.IsLoopback()
		if port != 0 && own.Port() == port && same {
			return "is a listener of the hub"
		}
	}
	return ""
}

// RefusedRanges are the addresses that Refuse refuses at every port, for those who cannot ask it.
// IPv4 addresses mapped into IPv6 are refused as a whole: no name needs them.
func (p AddressPolicy) RefusedRanges() []netip.Prefix {
	ranges := slices.Clone(refusedRanges)
	if !p.AllowLoopback {
		ranges = append(ranges, loopbackRanges...)
	}
	for _, ip := range slices.SortedFunc(maps.Keys(metadataAddresses), netip.Addr.Compare) {
		ranges = append(ranges, netip.PrefixFrom(ip, ip.BitLen()))
	}
	return ranges
}

var (
	refusedRanges = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/32"), netip.MustParsePrefix("::/128"),
		netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8"),
		netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
		netip.MustParsePrefix("255.255.255.255/32"), netip.MustParsePrefix("::ffff:0:0/96"),
	}
	loopbackRanges = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
)

// RefuseHost is Refuse for names, before any resolution: names of this machine
// and of cloud metadata services, and addresses written as names, also in the
// odd forms that some resolvers understand (127.1, 0x7f000001, 2130706433).
func (p AddressPolicy) RefuseHost(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if ip, err := netip.ParseAddr(name); err == nil {
		return p.Refuse(ip, 0)
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	local := name == "localhost" || strings.HasSuffix(name, ".localhost") || name == "localhost.localdomain"
	switch {
	case name == "":
		return "is empty"
	case strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"):
		return "ends in a number, as addresses do"
	case local && !p.AllowLoopback:
		return "names this machine"
	case name == "metadata.google.internal" || name == "metadata.goog" || name == "metadata":
		return "names a cloud metadata service"
	}
	return ""
}

// metadataAddresses are those of cloud metadata services: they give credentials to every process that reaches them.
var metadataAddresses = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"): true, // most clouds
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"):   true, // Azure: the wire server
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle Cloud
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS
}

// IsMetadataAddress reports whether the address is that of a cloud metadata service.
func IsMetadataAddress(ip netip.Addr) bool { return metadataAddresses[ip.Unmap()] }
