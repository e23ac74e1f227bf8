package envoy

import (
	"net/netip"
	"slices"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// A ServiceEntry may name CIDR blocks among its addresses. Connections to one are
// caught by the listener of all services of the port, in filter chains that match
// the block. Envoy looks at the destination first: what else the port has is not for
// connections into a block.

// rangesOf are the CIDR blocks at which a proxy of the cluster catches the service's
// TCP connections, in order; IPv6 ones are for proxies that have such an address.
func rangesOf(s *federation.Service, f node.Facet) []netip.Prefix {
	if callersDialPods(s) {
		return nil
	}
	lists := [][]netip.Prefix{s.ClusterVIPs.Of(f.Cluster)}
	if !hasShard(s, f.Cluster) {
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

// addRanges adds chains for the connections to the CIDR blocks of services. Of
// services with the same block, the first in the order of hostnames has it.
func (b *builder) addRanges(l *listenerv3.Listener, number uint16) {
	taken := map[netip.Prefix]*federation.Service{}
	for group := range byHostname(b.reader.SpecsOnPort(number)) {
		owner, _ := b.firstOwner(b.reader.ByHostname(group[0].Key.Hostname), number)
		if owner.service == nil || owner.port.Protocol.IsHTTP() || b.isAlias(owner.service) {
			continue
		}
		for _, block := range b.routedRanges(owner) {
			if first := taken[block]; first != nil {
				b.leaveOut(resource.Reason{Code: resource.ReasonVIPTaken, Service: owner.service.Key, Message: "connections to " + block.String() + " at port " + strconv.Itoa(int(number)) + " are those of " +
					first.Key.String() + ", which has the same addresses and comes before " + owner.service.Key.String() + "; give one of them other addresses"})
				continue
			}
			taken[block] = owner.service
			l.FilterChains = append(l.FilterChains, b.rangeChains(l, owner, block)...)
		}
	}
}

// routedRanges are the CIDR blocks of the service, and those within them that its
// VirtualService routes apart. Envoy takes the narrowest one that has the address.
func (b *builder) routedRanges(p servedPort) []netip.Prefix {
	blocks := rangesOf(p.service, b.facet)
	r := b.ruleFor(p.service.Key.Hostname, p.port.Number)
	if r == nil {
		return blocks
	}
	all := slices.Clone(blocks)
	for _, text := range virtualservice.DestinationSubnets(r.spec) {
		subnet, err := virtualservice.ParseSubnet(text)
		inBlock := err == nil && slices.ContainsFunc(blocks, func(block netip.Prefix) bool { return virtualservice.Within(subnet, block) })
		if inBlock && !slices.Contains(all, subnet) {
			all = append(all, subnet)
		}
	}
	return all
}

// rangeChains are the chains of one block: TLS by the name of the server first.
func (b *builder) rangeChains(l *listenerv3.Listener, owner servedPort, block netip.Prefix) []*listenerv3.FilterChain {
	match := func() *listenerv3.FilterChainMatch {
		return &listenerv3.FilterChainMatch{PrefixRanges: []*corev3.CidrRange{{
			AddressPrefix: block.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(block.Bits())),
		}}}
	}
	c := b.connectionsTo(owner, block)
	var chains []*listenerv3.FilterChain
	for _, n := range c.named {
		m := match()
		m.ServerNames, m.TransportProtocol = n.servers, "tls"
		chains = append(chains, &listenerv3.FilterChain{FilterChainMatch: m, Filters: []*listenerv3.Filter{n.filter}})
	}
	if len(c.named) > 0 && !hasTLSInspector(l) {
		l.ListenerFilters = append(l.ListenerFilters, resource.TLSInspectorFilter())
		l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(detection), true
	}
	return append(chains, &listenerv3.FilterChain{FilterChainMatch: match(), Filters: []*listenerv3.Filter{c.rest}})
}

func hasTLSInspector(l *listenerv3.Listener) bool {
	return slices.ContainsFunc(l.GetListenerFilters(), func(f *listenerv3.ListenerFilter) bool { return f.GetName() == resource.TLSInspector })
}
