package outbound

import (
	"net/netip"
	"slices"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/virtualservice"
)

// addRanges adds chains for the connections to the CIDR blocks of the services, few, that have any. Of
// services with the same block, the first in the order of hostnames has it.
func addRanges(v *facet.View, l *listenerv3.Listener, number uint16) {
	taken := map[netip.Prefix]*federation.Service{}
	services := v.Reader.SelectOnPort(number, service.HasRanges)
	for group := range service.ByHostname(slices.Values(services)) {
		owner, _ := service.OwnerAmong(v, v.Reader.ByHostname(group[0].Key.Hostname), number)
		if owner.Service == nil || !v.Exposes(owner.Service, number) || owner.Port.Protocol.IsHTTP() || service.IsAlias(v, owner.Service) {
			continue
		}
		for _, block := range routedRanges(v, owner) {
			if first := taken[block]; first != nil {
				v.LeaveOut(resource.Reason{Code: resource.ReasonVIPTaken, Service: owner.Service.Key, Message: "connections to " + block.String() +
					" at port " + strconv.Itoa(int(number)) + " are those of " +
					first.Key.String() + ", which has the same addresses and comes before " + owner.Service.Key.String() +
					"; give one of them other addresses"})
				continue
			}
			taken[block] = owner.Service
			l.FilterChains = append(l.FilterChains, rangeChains(v, l, owner, block)...)
		}
	}
}

// routedRanges are the CIDR blocks of the service, and those within them that its
// VirtualService routes apart. Envoy takes the narrowest one that has the address.
func routedRanges(v *facet.View, p service.ServedPort) []netip.Prefix {
	blocks := service.RangesOf(p.Service, v.Facet)
	r := route.RuleFor(v, p.Service.Key.Hostname, p.Port.Number)
	if r == nil {
		return blocks
	}
	all := slices.Clone(blocks)
	for _, text := range virtualservice.DestinationSubnets(r.Spec) {
		subnet, err := virtualservice.ParseSubnet(text)
		inBlock := err == nil && slices.ContainsFunc(blocks, func(block netip.Prefix) bool { return virtualservice.Within(subnet, block) })
		if inBlock && !slices.Contains(all, subnet) {
			all = append(all, subnet)
		}
	}
	return all
}

// plainProtocol is what the TLS inspector calls connections without TLS. The ALPN of a
// ClientHello counts as an application protocol, too.
const plainProtocol = "raw_buffer"

// rangeChains are the chains of one block: TLS by the name of the server first.
func rangeChains(v *facet.View, l *listenerv3.Listener, owner service.ServedPort, block netip.Prefix) []*listenerv3.FilterChain {
	match := func() *listenerv3.FilterChainMatch {
		return &listenerv3.FilterChainMatch{PrefixRanges: []*corev3.CidrRange{{
			AddressPrefix: block.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(block.Bits())),
		}}}
	}
	c := route.ConnectionsTo(v, owner, block)
	var chains []*listenerv3.FilterChain
	for _, n := range c.Named {
		m := match()
		m.ServerNames, m.TransportProtocol = n.Servers, "tls"
		chains = append(chains, &listenerv3.FilterChain{FilterChainMatch: m, Filters: n.Filters})
		listener.Detect(v, l, resource.TLSInspectorFilter())
	}
	if service.Detected(v, owner.Port) {
		listener.Detect(v, l, resource.HTTPInspectorFilter())
		requests, rest := match(), match()
		requests.TransportProtocol, rest.TransportProtocol = plainProtocol, plainProtocol
		chains = append(chains, detectedChain(v, owner, requests), &listenerv3.FilterChain{FilterChainMatch: rest, Filters: c.Rest})
	}
	return append(chains, &listenerv3.FilterChain{FilterChainMatch: match(), Filters: c.Rest})
}
