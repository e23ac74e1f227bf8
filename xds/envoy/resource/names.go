package resource

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// The names of resources that do not belong to services.
const (
	PassthroughCluster        = "PassthroughCluster"        // to where the caller wanted
	BlackHoleCluster          = "BlackHoleCluster"          // to nowhere
	InboundPassthroughCluster = "InboundPassthroughCluster" // to the workload itself
	VirtualOutbound           = "virtualOutbound"
	VirtualInbound            = "virtualInbound"
	NamesListener             = "dns"
	NameTable                 = "names" // of the agent that answers DNS requests itself
	HTTPProxyRoutes           = "http_proxy"
)

// The ports to which captured connections are redirected.
const (
	OutboundPort = 15001
	InboundPort  = 15006
	NamesPort    = 15053 // DNS requests, UDP
)

// ClusterName names the cluster and the endpoints of a service port; the part
// between port and host is for subsets.
func ClusterName(host federation.Hostname, port uint16) string {
	return SubsetClusterName(host, port, "")
}

// SubsetClusterName names the cluster and the endpoints of a subset of a service
// port; the empty subset is the whole service.
func SubsetClusterName(host federation.Hostname, port uint16, subset string) string {
	return fmt.Sprintf("outbound|%d|%s|%s", port, subset, host)
}

// The names of what Sidecars say about ports of the workload.
const (
	inboundCluster  = "inbound|"
	inboundListener = "inbound_"
)

// InboundClusterName names the cluster of a port of the workload.
func InboundClusterName(port uint16) string { return fmt.Sprintf(inboundCluster+"%d||", port) }

// InboundListener names the listener that is bound to a port of the workload.
func InboundListener(port uint16) string { return fmt.Sprintf(inboundListener+"%d", port) }

// ParseInbound reads the name of a cluster, or of a listener, of a port of the workload.
func ParseInbound(name string) (port uint16, ok bool) {
	if number, is := strings.CutPrefix(name, inboundListener); is {
		return ParsePort(number)
	}
	number, is := strings.CutPrefix(strings.TrimSuffix(name, "||"), inboundCluster)
	port, ok = ParsePort(number)
	return port, is && ok
}

// ClusterID is what a cluster's name says.
type ClusterID struct {
	Host   federation.Hostname
	Port   uint16
	Subset string
}

// ParseClusterName reads a name; of the four parts only the subset may hold the
// character that parts them.
func ParseClusterName(name string) (id ClusterID, ok bool) {
	return parseCluster("outbound|", name)
}

// DatagramCluster names the cluster and the endpoints of a service port for datagrams.
func DatagramCluster(host federation.Hostname, port uint16) string {
	return fmt.Sprintf(datagrams+"%d||%s", port, host)
}

const datagrams = "udp|"

// ParseDatagramCluster reads such a name.
func ParseDatagramCluster(name string) (id ClusterID, ok bool) { return parseCluster(datagrams, name) }

func parseCluster(start, name string) (id ClusterID, ok bool) {
	rest, outbound := strings.CutPrefix(name, start)
	number, rest, _ := strings.Cut(rest, "|")
	at := strings.LastIndexByte(rest, '|')
	if !outbound || at < 0 {
		return ClusterID{}, false
	}
	port, ok := ParsePort(number)
	return ClusterID{federation.Hostname(rest[at+1:]), port, rest[:at]}, ok
}

// ParsePort reads a port from 1 to 65535.
func ParsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n > 0
}

// WildcardListener names the listener of all services of the port.
func WildcardListener(port uint16) string { return fmt.Sprintf("0.0.0.0_%d", port) }

// HTTPProxyListener names the listener of the explicit HTTP proxy.
func HTTPProxyListener(port uint16) string { return fmt.Sprintf("127.0.0.1_%d", port) }

// VIPListener names the listener of the services at an address.
func VIPListener(vip netip.Addr, port uint16) string { return fmt.Sprintf("%s_%d", vip, port) }

// DatagramListener names the listener for datagrams at an address.
func DatagramListener(address netip.Addr, port uint16) string {
	return "udp_" + VIPListener(address, port)
}

// ParseListener reads the name of a listener of services; the
// unspecified address is that of all services of the port.
func ParseListener(name string) (vip netip.Addr, port uint16, ok bool) {
	at := strings.LastIndexByte(name, '_')
	if at < 0 {
		return netip.Addr{}, 0, false
	}
	vip, err := netip.ParseAddr(name[:at])
	port, ok = ParsePort(name[at+1:])
	return vip, port, ok && err == nil
}

// PodListener names the listener of a pod's port; the name does not contain an address.
func PodListener(host federation.Hostname, port uint16) string {
	return fmt.Sprintf("pod_%s_%d", host, port)
}

// TargetName is what gRPC clients dial: the names of their listeners and routes.
func TargetName(host string, port uint16) string { return fmt.Sprintf("%s:%d", host, port) }

// ParseTarget reads the name of a target.
func ParseTarget(name string) (host string, port uint16, ok bool) {
	at := strings.LastIndexByte(name, ':')
	if at <= 0 {
		return "", 0, false
	}
	port, ok = ParsePort(name[at+1:])
	return name[:at], port, ok
}

// ValidateName refuses names that Envoy or gRPC would not accept.
func ValidateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("name is empty")
	case len(name) > maxName:
		return fmt.Errorf("name has %d bytes, at most %d are sent", len(name), maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("name has control characters")
	}
	return nil
}

// maxName is the longest name of a resource: a hostname has up to 253 bytes, a
// subset 63, and a cluster's name is longer by up to 16.
const maxName = 332

// Delimited is how a name is in the names of statistics of proxies whose bootstrap looks for its end: names of hosts have
// dots, by which Envoy divides those of statistics.
func Delimited(name string) string { return name + ";" }
