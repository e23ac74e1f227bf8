package service

import (
	"net/netip"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
)

// ListenerVIPs are the addresses at which a proxy of the cluster catches the
// service's TCP connections. A range has no listener of its own, see RangesOf, and
// neither has a headless service, which has listeners at its pods. IPv6
// addresses are for proxies that have one, allocated ones for proxies with DNS
// capture: no other caller learns of them.
func ListenerVIPs(s *federation.Service, f node.Facet) []netip.Addr {
	if callersDialPods(s) {
		return nil
	}
	vips, local := VIPs(s, f.Cluster)
	if f.Automatic && !local && s.HasAutomaticVIPs() {
		automatic := s.Key.AutomaticVIPs()
		vips = append(vips, automatic[:]...)
	}
	return slices.DeleteFunc(vips, func(vip netip.Addr) bool {
		return vip.Is6() && !f.IPv6 || federation.IsAllocatedVIP(vip) && !f.Automatic
	})
}

// VIPs returns the single addresses under which callers in the cluster
// know the service, in the order of cluster and address: those of their own
// cluster if it has the service, else those of every other. Without a cluster
// all are foreign. An exported service is foreign to the clusters that export it, too.
func VIPs(s *federation.Service, cluster federation.ClusterID) (vips []netip.Addr, local bool) {
	own := singleAddresses(nil, s.ClusterVIPs.Of(cluster))
	if HasShard(s, cluster) && (len(own) > 0 || !s.Key.Hostname.IsClusterSet()) {
		return own, true
	}
	for _, prefixes := range s.ClusterVIPs.All() {
		vips = singleAddresses(vips, prefixes)
	}
	return vips, false
}

// HasShard reports whether the cluster has the service.
func HasShard(s *federation.Service, cluster federation.ClusterID) bool {
	return slices.ContainsFunc(s.Endpoints, func(e federation.ShardEndpoints) bool { return e.Shard.Cluster == cluster })
}

func singleAddresses(to []netip.Addr, vips []netip.Prefix) []netip.Addr {
	for _, vip := range vips {
		if addr := vip.Addr().Unmap(); vip.IsSingleIP() && !addr.IsUnspecified() && addr.Zone() == "" && !slices.Contains(to, addr) {
			to = append(to, addr)
		}
	}
	return to
}

// A ServiceEntry may name CIDR blocks among its addresses. Connections to one are
// caught by the listener of all services of the port, in filter chains that match
// the block. Envoy looks at the destination first: what else the port has is not for
// connections into a block.

// HasRanges reports whether the service has CIDR blocks, for whichever proxies.
func HasRanges(s *federation.Service) bool {
	for _, prefixes := range s.ClusterVIPs.All() {
		if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return !p.IsSingleIP() }) {
			return true
		}
	}
	return false
}

// RangesOf are the CIDR blocks at which a proxy of the cluster catches the service's
// TCP connections, in order; IPv6 ones are for proxies that have such an address.
func RangesOf(s *federation.Service, f node.Facet) []netip.Prefix {
	if callersDialPods(s) {
		return nil
	}
	lists := [][]netip.Prefix{s.ClusterVIPs.Of(f.Cluster)}
	if !HasShard(s, f.Cluster) {
		lists = lists[:0]
		for _, prefixes := range s.ClusterVIPs.All() {
			lists = append(lists, prefixes)
		}
	}
	var ranges []netip.Prefix
	for _, prefix := range slices.Concat(lists...) {
		if !prefix.IsSingleIP() && (prefix.Addr().Is4() || f.IPv6) && !slices.Contains(ranges, prefix.Masked()) {
			ranges = append(ranges, prefix.Masked())
		}
	}
	return ranges
}
