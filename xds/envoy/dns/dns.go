// Package dns makes the listener that answers captured DNS requests.
package dns

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
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/service"
)

const (
	dnsFilter = "envoy.filters.udp.dns_filter"
	// nameLife is how long callers may remember an answer: Envoy's least.
	nameLife = 30 * time.Second
	// What is asked elsewhere, at most at once and for how long.
	namesPending = 256
	namesTimeout = 5 * time.Second
)

// Listener answers captured DNS requests for the hosts of services; what is
// none of them is asked of the servers that the proxy's own system asks.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	if name != resource.NamesListener {
		return nil
	}
	config := &dnsfilterv3.DnsFilterConfig{
		StatPrefix: resource.NamesListener,
		ServerConfig: &dnsfilterv3.DnsFilterConfig_ServerContextConfig{
			ConfigSource: &dnsfilterv3.DnsFilterConfig_ServerContextConfig_InlineDnsTable{
				InlineDnsTable: &dnsv3.DnsTable{VirtualDomains: knownNames(v)},
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
func knownNames(v *facet.View) []*dnsv3.DnsTable_DnsVirtualDomain {
	var table, aliases []*dnsv3.DnsTable_DnsVirtualDomain
	known := map[string]bool{}
	for group := range service.ByHostname(v.Reader.Specs()) {
		owner := namedBy(v, group)
		if owner == nil || !resource.IsDomain(string(owner.Key.Hostname)) {
			continue
		}
		if service.IsAlias(v, owner) {
			continue // answered with the addresses of its target
		}
		addresses := addressesOf(v, owner)
		if len(addresses) == 0 {
			continue
		}
		known[string(owner.Key.Hostname)] = true
		table = append(table, answer(string(owner.Key.Hostname), addresses))
		for _, alias := range service.Aliases(v, owner) {
			aliases = append(aliases, answer(string(alias), addresses))
		}
	}
	for _, alias := range aliases {
		if name := alias.GetName(); !known[name] && resource.IsDomain(name) {
			known[name] = true
			table = append(table, alias)
		}
	}
	pods := podAnswers(v, known)
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
func namedBy(v *facet.View, group []*federation.Service) *federation.Service {
	var owner *federation.Service
	for _, s := range group {
		if !v.Facet.Covers(s) {
			continue
		}
		if owner == nil || namedBefore(v, s, owner) {
			owner = s
		}
	}
	return owner
}

func namedBefore(v *facet.View, s, t *federation.Service) bool {
	own := v.Facet.OwnNamespace()
	if here, there := service.HasShard(s, v.Facet.Cluster), service.HasShard(t, v.Facet.Cluster); here != there && !service.IsOwn(s, own) && !service.IsOwn(t, own) {
		return here
	}
	return service.ComesBefore(s, t, own)
}

// addressesOf are the VIPs that callers in the facet's cluster get: their
// own cluster's, of a service of other clusters the automatic ones (unless it is
// cluster-local there), and of what is outside of the mesh those that it was given. None: the name is not answered
// here.
func addressesOf(v *facet.View, s *federation.Service) []string {
	passesOn := s.Resolution == federation.Passthrough && service.HasPods(s) // an entry may have addresses all the same
	if passesOn || !slices.ContainsFunc(s.Ports, func(p federation.ServicePort) bool { return p.Protocol.Transport() == federation.TransportTCP }) {
		return nil
	}
	vips, local := service.VIPs(s, v.Facet.Cluster)
	if !local && !s.MeshExternal && service.IsClusterLocal(s.Key.Hostname, v.Reader.Mesh()) {
		return nil // nothing of other clusters serves it
	}
	if !local && s.HasAutomaticVIPs() {
		automatic := s.Key.AutomaticVIPs()
		vips = automatic[:]
	}
	var addresses []string
	for _, vip := range vips {
		if (vip.Is4() || v.Facet.IPv6) && !givenElsewhere(v, s, vip) {
			addresses = append(addresses, vip.String())
		}
	}
	return addresses
}

// givenElsewhere reports whether the VIP is an automatic one of the service, and that
// another service was given it: callers would reach the other one.
func givenElsewhere(v *facet.View, s *federation.Service, vip netip.Addr) bool {
	if !s.IsAutomatic(vip) {
		return false
	}
	return len(v.Reader.SelectAtVIP(vip, func(t *federation.Service) bool {
		return t.Key != s.Key && v.Sees(t) && !t.IsAutomatic(vip) && slices.Contains(service.ListenerVIPs(t, v.Facet), vip)
	})) > 0
}
