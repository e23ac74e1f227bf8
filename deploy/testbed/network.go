package testbed

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"
)

// A Network is a switch in a namespace of its own: what joins it reaches each
// other and nothing else. Two Networks may have the same addresses.
type Network struct {
	t      testing.TB
	name   string
	prefix netip.Prefix
	inside *Namespace

	mu    sync.Mutex
	ports int
}

// A link is the connection of one namespace with one network.
type link struct {
	network *Network
	port    string
	address netip.Addr
}

// NewNetwork makes a network of a prefix, such as 10.1.0.0/24. The switch has
// the first address; it answers there and passes nothing on to elsewhere.
func NewNetwork(t testing.TB, name, prefix string) *Network {
	t.Helper()
	parsed, err := netip.ParsePrefix(prefix)
	if err != nil {
		t.Fatalf("making the network %s: %v", name, err)
	}
	network := &Network{t: t, name: name, prefix: parsed.Masked(), inside: NewNamespace(t, name+"-switch")}
	network.inside.Exec("ip", "link", "add", "br0", "type", "bridge")
	network.inside.addAddress("br0", netip.PrefixFrom(network.Gateway(), parsed.Bits()))
	network.inside.Exec("ip", "link", "set", "br0", "up")
	return network
}

// Gateway returns the address of the switch, where default routes point to.
func (w *Network) Gateway() netip.Addr { return w.prefix.Addr().Next() }

// Join connects the namespace to a network under an address. The first network
// that a namespace joins gets its default route. It returns the address.
func (n *Namespace) Join(network *Network, address string) netip.Addr {
	n.t.Helper()
	parsed, err := netip.ParseAddr(address)
	if err != nil || !network.prefix.Contains(parsed) {
		n.t.Fatalf("joining %s to the network %s: %q is not an address of %s", n, network.name, address, network.prefix)
	}
	device, port := fmt.Sprintf("eth%d", len(n.links)), network.nextPort()
	n.exec("", []*os.File{network.inside.file}, "ip", "link", "add", device, "type", "veth", "peer", "name", port, "netns", "/proc/self/fd/3")
	network.inside.Exec("ip", "link", "set", port, "master", "br0", "up")
	n.addAddress(device, netip.PrefixFrom(parsed, network.prefix.Bits()))
	n.Exec("ip", "link", "set", device, "up")
	if len(n.links) == 0 {
		n.Exec("ip", "route", "add", "default", "via", network.Gateway().String())
	}
	n.links = append(n.links, link{network: network, port: port, address: parsed})
	return parsed
}

// Cut takes the cable between the namespace and a network out. Packets are lost
// without an answer; addresses and routes stay.
func (n *Namespace) Cut(network *Network) { n.t.Helper(); n.setPort(network, "down") }

// Mend ends a Cut.
func (n *Namespace) Mend(network *Network) { n.t.Helper(); n.setPort(network, "up") }

// Forward lets the namespace pass packets on between its networks.
func (n *Namespace) Forward() { n.t.Helper(); n.Sysctl("net/ipv4/ip_forward", "1") }

// AddLocal gives the namespace a further address of its own, on its loopback.
func (n *Namespace) AddLocal(address string) {
	n.t.Helper()
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		n.t.Fatalf("adding an address to %s: %v", n, err)
	}
	n.addAddress("lo", netip.PrefixFrom(parsed, parsed.BitLen()))
}

func (n *Namespace) addAddress(device string, prefix netip.Prefix) {
	n.t.Helper()
	argv := []string{"ip", "addr", "add", prefix.String(), "dev", device}
	if prefix.Addr().Is6() {
		argv = append(argv, "nodad")
	}
	n.Exec(argv...)
}

func (n *Namespace) setPort(network *Network, state string) {
	n.t.Helper()
	for _, link := range n.links {
		if link.network == network {
			network.inside.Exec("ip", "link", "set", link.port, state)
			return
		}
	}
	n.t.Fatalf("setting the link of %s %s: it has not joined the network %s", n, state, network.name)
}

func (w *Network) nextPort() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ports++
	return fmt.Sprintf("port%d", w.ports)
}
