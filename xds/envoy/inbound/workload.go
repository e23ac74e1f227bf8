package inbound

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/xds/envoy/check"
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Cluster leads to the workload: to where a Sidecar says, within its limits.
func Cluster(v *facet.View, name string) proto.Message {
	number, ok := resource.ParseInbound(name)
	p, known := workloadOf(v).ports[number]
	if !ok || !known || p.cluster(number) != name {
		return nil
	}
	c := cluster.Inbound(name, p.workload(v.Facet, number), p.policy(), v.Facet.IPv6)
	c.Metadata = resource.IstioMetadata(nil, p.services...)
	return c
}

// policy is of connections to the workload.
func (p port) policy() *networking.TrafficPolicy {
	return &networking.TrafficPolicy{ConnectionPool: p.limits}
}

// workload is where the workload listens; nil: where the caller wanted.
func (p port) workload(f node.Facet, number uint16) *corev3.Address {
	if path, is := p.socket(); is {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
	}
	at := p.endpoint(f, number)
	if !at.IsValid() {
		return nil
	}
	return resource.SocketAddress(at.Addr().String(), at.Port())
}

// socket is the path of the workload's, if it listens at one.
func (p port) socket() (path string, is bool) {
	return strings.CutPrefix(p.ingress.GetDefaultEndpoint(), "unix://")
}

// endpoint is the address and port of the workload; invalid: where the caller wanted, or a
// socket. Who listens at the port himself knows nothing of that: his workload is at the loopback.
func (p port) endpoint(f node.Facet, number uint16) netip.AddrPort {
	host, service, err := net.SplitHostPort(p.ingress.GetDefaultEndpoint())
	to, ok := resource.ParsePort(service)
	switch {
	case p.ingress.GetDefaultEndpoint() == "" && p.bound:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), number)
	case err != nil || !ok:
		return netip.AddrPort{}
	case host == "127.0.0.1" || host == "::1":
		return netip.AddrPortFrom(netip.MustParseAddr(host), to)
	case host == "" || host == "0.0.0.0" || host == "::":
		return netip.AddrPortFrom(ownAddress(f, host == "::"), to)
	}
	return netip.AddrPort{}
}

// ownAddress is the first of the workload's addresses, of that family if it has one.
func ownAddress(f node.Facet, ipv6 bool) netip.Addr {
	own := f.At().Addresses
	if i := slices.IndexFunc(own, func(a netip.Addr) bool { return a.Is6() == ipv6 }); i >= 0 {
		return own[i]
	}
	return own[0]
}

// binds are where the proxies listen: where the Sidecar says, else at the workload's own addresses.
func (p port) binds(f node.Facet) []netip.Addr {
	if at, err := netip.ParseAddr(p.ingress.GetBind()); err == nil {
		return []netip.Addr{at}
	}
	return f.At().Addresses
}

// The ports that the proxies themselves listen at.
const (
	firstOwn = 15000
	lastOwn  = 15099
)

// refusal says why the proxies cannot listen as the Sidecar says; empty: they can.
func (p port) refusal(f node.Facet, number uint16) string {
	path, isSocket := p.socket()
	given := p.ingress.GetDefaultEndpoint()
	switch to := p.endpoint(f, number); {
	case number == 0:
		return "it has no port"
	case isSocket && path == "" || given != "" && !isSocket && !to.IsValid():
		return fmt.Sprintf("%q is not an endpoint of the workload; write 127.0.0.1:PORT, 0.0.0.0:PORT or unix:///PATH", given)
	case len(path) > check.MaxSocketPath:
		return fmt.Sprintf("the path of the socket is longer than %d bytes; use a shorter one", check.MaxSocketPath)
	case number == resource.InboundPort || p.bound && number >= firstOwn && number <= lastOwn:
		return fmt.Sprintf("the proxy has ports %d to %d itself; write another port", firstOwn, lastOwn)
	case p.bound && to.Port() == number && slices.ContainsFunc(p.binds(f), func(at netip.Addr) bool { return reaches(at, to.Addr()) }):
		return fmt.Sprintf("the proxy would send what it receives at port %d to itself; write another bind, or another port in defaultEndpoint",
			number)
	}
	return ""
}

// reaches reports whether a listener at the address gets what is sent to the other.
func reaches(at, to netip.Addr) bool {
	return at == to || at.IsUnspecified() && at.Is4() == to.Is4()
}
