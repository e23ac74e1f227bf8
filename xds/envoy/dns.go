package envoy

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/data/dns/v3"
	dnsfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/dns_filter/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

const (
	dnsFilter = "envoy.filters.udp.dns_filter"
	// nameLife is how long callers may remember an answer: Envoy's least.
	nameLife = 30 * time.Second
	// What is asked elsewhere, at most at once and for how long.
	namesPending = 256
	namesTimeout = 5 * time.Second
)

// resource.NamesListener answers captured DNS requests for the hosts of services; what is
// none of them is asked of the servers that the proxy's own system asks.
func (b *builder) namesListener() *listenerv3.Listener {
	config := &dnsfilterv3.DnsFilterConfig{
		StatPrefix: resource.NamesListener,
		ServerConfig: &dnsfilterv3.DnsFilterConfig_ServerContextConfig{
			ConfigSource: &dnsfilterv3.DnsFilterConfig_ServerContextConfig_InlineDnsTable{
				InlineDnsTable: &dnsv3.DnsTable{VirtualDomains: b.knownNames()},
			},
		},
		ClientConfig: &dnsfilterv3.DnsFilterConfig_ClientContextConfig{
			ResolverTimeout: durationpb.New(namesTimeout), MaxPendingLookups: namesPending,
		},
	}
	address := resource.SocketAddress("127.0.0.1", resource.NamesPort)
	address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	return &listenerv3.Listener{
		Name: resource.NamesListener, Address: address, TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name: dnsFilter, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: resource.Any(config)},
		}},
	}
}

// knownNames are the hosts that have addresses of their own, in the order of
// hosts. Of services of one host the owner's addresses are given.
func (b *builder) knownNames() []*dnsv3.DnsTable_DnsVirtualDomain {
	var table, aliases []*dnsv3.DnsTable_DnsVirtualDomain
	known := map[string]bool{}
	for group := range byHostname(b.reader.Specs()) {
		owner := b.namedBy(group)
		if owner == nil || !resource.IsDomain(string(owner.Key.Hostname)) {
			continue
		}
		if b.isAlias(owner) {
			continue // answered with the addresses of its target
		}
		addresses := b.addressesOf(owner)
		if len(addresses) == 0 {
			continue
		}
		known[string(owner.Key.Hostname)] = true
		table = append(table, answer(string(owner.Key.Hostname), addresses))
		for _, alias := range b.aliases(owner) {
			aliases = append(aliases, answer(string(alias), addresses))
		}
	}
	for _, alias := range aliases {
		if name := alias.GetName(); !known[name] && resource.IsDomain(name) {
			known[name] = true
			table = append(table, alias)
		}
	}
	pods := b.podAnswers(known)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		table = append(table, answer(name, pods[name]))
	}
	return table
}

func answer(name string, addresses []string) *dnsv3.DnsTable_DnsVirtualDomain {
	return &dnsv3.DnsTable_DnsVirtualDomain{
		Name: name, AnswerTtl: durationpb.New(nameLife),
		Endpoint: &dnsv3.DnsTable_DnsEndpoint{EndpointConfig: &dnsv3.DnsTable_DnsEndpoint_AddressList{
			AddressList: &dnsv3.DnsTable_AddressList{Address: addresses},
		}},
	}
}

// namedBy is the service whose the host is: that of the proxy's own namespace, else
// one that the proxy's own cluster has, else the oldest.
func (b *builder) namedBy(group []*federation.Service) *federation.Service {
	var owner *federation.Service
	for _, s := range group {
		if !b.facet.Covers(s) {
			continue
		}
		if owner == nil || b.namedBefore(s, owner) {
			owner = s
		}
	}
	return owner
}

func (b *builder) namedBefore(s, t *federation.Service) bool {
	own := b.facet.OwnNamespace()
	if here, there := hasShard(s, b.facet.Cluster), hasShard(t, b.facet.Cluster); here != there && !isOwn(s, own) && !isOwn(t, own) {
		return here
	}
	return comesBefore(s, t, own)
}

// addressesOf are the VIPs that callers in the facet's cluster are told: their
// own cluster's, of a service of other clusters the automatic ones (unless it is
// cluster-local there), and of what is outside of the mesh those that it was given. None: the name is not answered
// here.
func (b *builder) addressesOf(s *federation.Service) []string {
	passesOn := s.Resolution == federation.Passthrough && hasPods(s) // an entry may have addresses all the same
	if passesOn || !slices.ContainsFunc(s.Ports, func(p federation.ServicePort) bool { return p.Protocol.Transport() == federation.TransportTCP }) {
		return nil
	}
	vips, local := serviceVIPs(s, b.facet.Cluster)
	if !local && !s.MeshExternal && isClusterLocal(s.Key.Hostname, b.reader.Mesh()) {
		return nil // nothing of other clusters serves it
	}
	if !local && s.HasAutomaticVIPs() {
		automatic := s.Key.AutomaticVIPs()
		vips = automatic[:]
	}
	var addresses []string
	for _, vip := range vips {
		if (vip.Is4() || b.facet.IPv6) && !b.givenElsewhere(s, vip) {
			addresses = append(addresses, vip.String())
		}
	}
	return addresses
}

// givenElsewhere tells that the VIP is an automatic one of the service, and that
// another service was given it: callers would reach the other one.
func (b *builder) givenElsewhere(s *federation.Service, vip netip.Addr) bool {
	if !s.IsAutomatic(vip) {
		return false
	}
	return len(b.reader.SelectAtVIP(vip, func(t *federation.Service) bool {
		return t.Key != s.Key && b.sees(t) && !t.IsAutomatic(vip) && slices.Contains(listenerVIPs(t, b.facet), vip)
	})) > 0
}
