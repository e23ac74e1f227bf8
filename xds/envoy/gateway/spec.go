// Package gateway reads the servers of Gateways: their ports, hosts, protocols and TLS.
package gateway

import (
	"fmt"
	"net/netip"
	"strings"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

// ServerProtocol is what the connections to a port of a gateway speak; they are all of
// one kind.
type ServerProtocol string

// What connections may speak.
const (
	ServesHTTP ServerProtocol = "plaintext HTTP"
	ServesTLS  ServerProtocol = "TLS"
	ServesTCP  ServerProtocol = "plaintext TCP"
	ServesUDP  ServerProtocol = "datagrams"
)

// ServerProtocolOf tells what a server speaks, or why it cannot be.
func ServerProtocolOf(s *networking.Server) (how ServerProtocol, why string) {
	switch protocol := strings.ToUpper(s.GetPort().GetProtocol()); protocol {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB":
		return ServesHTTP, ""
	case "HTTPS", "TLS":
		if s.GetTls() == nil {
			return "", "protocol " + protocol + " needs tls"
		}
		return ServesTLS, ""
	case "TCP", "MONGO", "MYSQL", "REDIS":
		if s.GetTls() != nil {
			return ServesTLS, ""
		}
		return ServesTCP, ""
	case "UDP":
		if s.GetTls() != nil {
			return "", "protocol UDP has no tls"
		}
		return ServesUDP, ""
	default:
		return "", fmt.Sprintf("protocol %q is not one that a gateway can serve", protocol)
	}
}

// TranslatesWeb reports whether the server translates gRPC-Web to gRPC.
func TranslatesWeb(s *networking.Server) bool {
	return strings.EqualFold(s.GetPort().GetProtocol(), "GRPC-WEB")
}

// Bind is the address of the server; any IPv4 address where it names none.
func Bind(s *networking.Server) (netip.Addr, error) {
	if s.GetBind() == "" {
		return netip.IPv4Unspecified(), nil
	}
	addr, err := netip.ParseAddr(s.GetBind())
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s.GetBind())
	}
	return addr.Unmap(), nil
}

// Host is a host of a server and whose VirtualServices may bind to it.
type Host struct {
	Namespace string // empty: any
	Name      string // in lower case; may be a wildcard
}

// Hosts reads NAMESPACE/HOST, ./HOST, */HOST and HOST of a Gateway in the
// namespace.
func Hosts(hosts []string, own string) []Host {
	var all []Host
	for _, text := range hosts {
		namespace, name, ok := strings.Cut(strings.ToLower(text), "/")
		switch {
		case !ok:
			namespace, name = "", strings.ToLower(text)
		case namespace == ".":
			namespace = own
		case namespace == "*":
			namespace = ""
		}
		if name == "*" || resource.IsDomain(name) {
			all = append(all, Host{namespace, name})
		}
	}
	return all
}

// Admitted is the name under which a VirtualService of the namespace has the
// host at the server: the narrower of the two names; empty: it has not.
func (h Host) Admitted(host, namespace string) string {
	switch {
	case h.Namespace != "" && h.Namespace != namespace:
		return ""
	case resource.Covers(h.Name, host):
		return host
	case resource.Covers(host, h.Name):
		return h.Name
	}
	return ""
}

// BySNI reports whether the server passes connections of other networks on, by the name for
// which they ask.
func BySNI(s *networking.Server) bool {
	return s.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH
}

// PassesOn reports whether the server does not end TLS.
func PassesOn(s *networking.Server) bool {
	return BySNI(s) || s.GetTls().GetMode() == networking.ServerTLSSettings_PASSTHROUGH
}
