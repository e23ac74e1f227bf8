package node

import (
	"fmt"
	"iter"
	"net/netip"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Facet is the smallest comparable part of a proxy that a set of resources
// depends on. Fields that do not matter to its scope are zero. It is a valid map
// key; others have no reason to look inside.
type Facet struct {
	Scope     Scope
	Cluster   federation.ClusterID
	Network   federation.NetworkID
	Namespace string
	Domain    string
	Addresses string // sorted, joined by commas
	Port      uint16
	IPv6      bool                // the proxies have IPv6 addresses
	Lookup    resource.Lookup     // which addresses of names they use
	GRPC      bool                // there is no proxy: the client's own gRPC asks
	Place     string              // near, far, or empty where places do not matter
	Locality  federation.Locality // of the proxies
	Identity  bool                // the proxies have an identity of the mesh
	Agent     bool                // it comes from Istio's agent beside them
	Stats     bool                // they have Istio's filters for metrics and for the exchange of metadata
	SNIDNAT   bool                // the proxies are routers in sni-dnat mode
	Balanced  bool                // services whose callers choose the endpoint, for gateways, which have no such callers
	Automatic bool                // DNS capture: callers know services by automatic VIPs
	Delimited bool                // names in their statistics end with a semicolon
	// The effective configuration of the proxy.
	Objects federation.ClusterID // whose objects for its own proxies count; empty: there are none
	// Egress is what a Sidecar imports: lists, joined by semicolons, of NAMESPACE/HOST and of ~NAMESPACE/HOST,
	// which excludes, for a port alone after PORT:, for no captured port after 0:, for routes alone after -: in the
	// last list; empty: everything.
	Egress      string
	Labels      string                  // those of the proxy's labels that decide about anything: KEY=VALUE, sorted, joined by commas
	Outbound    federation.OutboundMode // empty: ALLOW_ANY
	EgressProxy string                  // the cluster to which connections to unknown hosts go; empty: where the caller wanted
	// Uncaptured: connections are not redirected to the proxies.
	Uncaptured bool
	// Transparent: inbound connections come to the proxies with the addresses of their ends (TPROXY).
	Transparent bool
	extras      extrasRef
}

func (f Facet) String() string {
	parts, e := []string{f.Scope.String()}, f.Extras()
	for _, p := range []struct{ key, value string }{
		{"cluster", string(f.Cluster)},
		{"network", string(f.Network)},
		{"namespace", f.Namespace},
		{"domain", f.Domain},
		{"addresses", f.Addresses},
		{"egress", f.Egress},
		{"labels", f.Labels},
		{"outbound", string(f.Outbound)},
		{"egress-proxy", f.EgressProxy},
		{"sidecar", e.Sidecar},
		{"objects", string(f.Objects)},
		{"telemetry", e.Telemetry},
		{"traced", e.Traced},
		{"patches", e.Patches},
		{"ports", e.Ports},
		{"quic", e.QUIC},
		{"datagrams", e.Datagrams},
		{"place", f.Place},
		{"priority", e.Priority},
		{"certificate", e.Certificate},
		{"settings", e.settings()},
		{"locality", strings.TrimRight(f.Locality.String(), "/")},
	} {
		if p.value != "" {
			parts = append(parts, p.key+"="+p.value)
		}
	}
	if f.Port != 0 {
		parts = append(parts, fmt.Sprintf("port=%d", f.Port))
	}
	for flag, is := range f.flags() {
		if is {
			parts = append(parts, flag)
		}
	}
	return strings.Join(parts, " ")
}

func (f Facet) flags() iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		_ = yield("ipv6", f.IPv6) && yield("grpc", f.GRPC) && yield("identity", f.Identity) && yield("agent", f.Agent) &&
			yield("stats", f.Stats) && yield("delimited", f.Delimited) && yield("sni-dnat", f.SNIDNAT) &&
			yield("automatic", f.Automatic) && yield("balanced", f.Balanced) && yield("uncaptured", f.Uncaptured) &&
			yield("transparent", f.Transparent) &&
			yield("ipv6-names", f.Lookup == resource.LookupIPv6Only) && yield("all-names", f.Lookup == resource.LookupAll)
	}
}

// Imports reports whether the facet's Sidecar, if it has one, wants what the
// namespace has for the host, which may be a wildcard, or routes that it imports lead to it.
func (f Facet) Imports(namespace string, host federation.Hostname) bool {
	if f.Egress == "" {
		return true
	}
	for list := range strings.SplitSeq(f.Egress, ";") {
		if _, hosts, _ := portOfList(list); listImports(hosts, namespace, host) {
			return true
		}
	}
	return false
}

// ImportsRule reports whether the facet's Sidecar, if it has one, wants the VirtualServices of the namespace for the host:
// it names the host itself.
func (f Facet) ImportsRule(namespace string, host federation.Hostname) bool {
	f.Egress, _, _ = strings.Cut(f.Egress, ";"+throughRoutes+":")
	return f.Imports(namespace, host)
}

// mentions reports whether the facet's Sidecar imports the host of the namespace, or excludes it.
func (f Facet) mentions(namespace string, host federation.Hostname) bool {
	for list := range strings.SplitSeq(f.Egress, ";") {
		_, hosts, _ := portOfList(list)
		for want := range strings.SplitSeq(hosts, ",") {
			if covers(strings.TrimPrefix(want, "~"), namespace, host) {
				return true
			}
		}
	}
	return false
}

// covers reports whether NAMESPACE/HOST, both of which may be wildcards, means the host of the namespace.
func covers(want, namespace string, host federation.Hostname) bool {
	ns, pattern, _ := strings.Cut(want, "/")
	return (ns == "*" || ns == namespace) && resource.Covers(pattern, string(host))
}

// Exposes reports whether the facet's Sidecar, if it has one, wants what the namespace has for the
// host at the port: a list for the port alone counts there instead of those for all. Clients without a proxy, and the
// explicit HTTP proxy, look at no ports.
func (f Facet) Exposes(namespace string, host federation.Hostname, port uint16) bool {
	if f.Egress == "" || f.GRPC {
		return f.ImportsRule(namespace, host)
	}
	own, all, hasOwn := false, false, false
	for list := range strings.SplitSeq(f.Egress, ";") {
		number, hosts, ofPort := portOfList(list)
		switch {
		case !ofPort || f.Has(namesPort) && number != 0:
			all = all || listImports(hosts, namespace, host)
		case number == port:
			hasOwn = true
			own = own || listImports(hosts, namespace, host)
		}
	}
	if hasOwn {
		return own
	}
	return all
}

// exposedApart reports whether a listener at an address of its own has the host.
func (f Facet) exposedApart(namespace string, host federation.Hostname) bool {
	for list := range strings.SplitSeq(f.Egress, ";") {
		hosts, apart := strings.CutPrefix(list, atNoPort+":")
		if apart && listImports(hosts, namespace, host) {
			return true
		}
	}
	return false
}

// portOfList is the port for which a list is: 0 if captured connections do not reach its hosts. ofPort: it is not
// for all ports that have no list of their own.
func portOfList(list string) (port uint16, hosts string, ofPort bool) {
	number, hosts, ofPort := strings.Cut(list, ":")
	if !ofPort {
		return 0, list, false
	}
	port, _ = resource.ParsePort(number)
	return port, hosts, true
}

// listImports reports whether one of the list has the host, and that none excludes it.
func listImports(list, namespace string, host federation.Hostname) bool {
	imported := false
	for want := range strings.SplitSeq(list, ",") {
		want, excludes := strings.CutPrefix(want, "~")
		if covers(want, namespace, host) {
			if excludes {
				return false
			}
			imported = true
		}
	}
	return imported
}

// IsPublic reports whether proxies of every namespace see the service.
func IsPublic(s *federation.Service) bool {
	return federation.Everywhere(s.ExportTo)
}

// What a proxy is given of a service may depend on where the proxy is: on its
// cluster, where the service is cluster-local; on its locality, where endpoints
// nearby come first. Such services have facets of their own (place near), so that
// proxies everywhere share what is the same everywhere (place far).
const (
	Near = "near"
	far  = "far"
)

// OwnNamespace is the one whose services come first for the facet's proxies. A
// router passes connections on for callers of any namespace.
func (f Facet) OwnNamespace() string {
	if f.Has(passes) {
		return ""
	}
	return f.Namespace
}

// At is where the proxies are, for the queries of a snapshot.
func (f Facet) At() federation.Place {
	p := federation.Place{Cluster: f.Cluster, Network: f.Network}
	for text := range strings.SplitSeq(f.Addresses, ",") {
		if addr, err := netip.ParseAddr(text); err == nil {
			p.Addresses = append(p.Addresses, addr)
		}
	}
	return p
}
