package testbed

import (
	"fmt"
	"strings"
)

// ProxyUID is the user that a sidecar runs as; what it sends is not captured.
const ProxyUID = 1337

// Capture sends the TCP traffic of the namespace through a sidecar, as a mesh
// does in a pod: outbound to port 15001, inbound to port 15006, except what the
// user uid sends. Inbound 15008, 15020, 15021 and 15090 stay as they are. IPv4
// only.
func (n *Namespace) Capture(uid int) {
	n.t.Helper()
	owner := fmt.Sprintf("-m owner --uid-owner %d", uid)
	rules := []string{
		"*nat",
		":MESH_INBOUND - [0:0]",
		":MESH_IN_REDIRECT - [0:0]",
		":MESH_OUTPUT - [0:0]",
		":MESH_REDIRECT - [0:0]",
		"-A PREROUTING -p tcp -j MESH_INBOUND",
		"-A MESH_INBOUND -p tcp --dport 15008 -j RETURN",
		"-A MESH_INBOUND -p tcp --dport 15020:15021 -j RETURN",
		"-A MESH_INBOUND -p tcp --dport 15090 -j RETURN",
		"-A MESH_INBOUND -p tcp -j MESH_IN_REDIRECT",
		"-A MESH_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006",
		"-A OUTPUT -p tcp -j MESH_OUTPUT",
		"-A MESH_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN",
		"-A MESH_OUTPUT ! -d 127.0.0.1/32 -o lo " + owner + " -j MESH_IN_REDIRECT",
		"-A MESH_OUTPUT " + owner + " -j RETURN",
		"-A MESH_OUTPUT -d 127.0.0.1/32 -j RETURN",
		"-A MESH_OUTPUT -p tcp -j MESH_REDIRECT",
		"-A MESH_REDIRECT -p tcp -j REDIRECT --to-ports 15001",
		"COMMIT",
	}
	n.exec(strings.Join(rules, "\n")+"\n", nil, "iptables-restore")
}

// CaptureTransparent hands inbound TCP connections of the namespace to port 15006 with the addresses of their ends, as
// Istio's TPROXY mode does. The proxy marks its own with 1337, so that they and their answers stay in the namespace.
// IPv4 only.
func (n *Namespace) CaptureTransparent() {
	n.t.Helper()
	rules := []string{
		"*mangle",
		"-A PREROUTING -p tcp -m mark --mark 1337 -j CONNMARK --save-mark",
		"-A OUTPUT -p tcp -m connmark --mark 1337 -j CONNMARK --restore-mark",
		"-A PREROUTING -i lo -j RETURN",
		"-A PREROUTING -p tcp ! -d 127.0.0.1/32 -j TPROXY --on-port 15006 --tproxy-mark 1337",
		"COMMIT",
	}
	n.exec(strings.Join(rules, "\n")+"\n", nil, "iptables-restore")
	n.Exec("ip", "rule", "add", "fwmark", "1337", "lookup", "133")
	n.Exec("ip", "route", "add", "local", "default", "dev", "lo", "table", "133")
}

// CaptureDNS sends the DNS requests of the namespace over UDP to port 15053 of
// its loopback, except those of the user uid.
func (n *Namespace) CaptureDNS(uid int) {
	n.t.Helper()
	n.Exec("iptables", "-t", "nat", "-A", "OUTPUT", "-p", "udp", "--dport", "53",
		"-m", "owner", "!", "--uid-owner", fmt.Sprint(uid), "-j", "REDIRECT", "--to-ports", "15053")
}
