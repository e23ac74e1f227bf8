// Package dns has the answers to captured DNS requests: as a listener, and as the table of
// those proxies beside which Istio's agent answers.
package dns

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/data/dns/v3"
	dnsfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/dns_filter/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"isthmus.dev/isthmus/xds/envoy/facet"
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
				InlineDnsTable: &dnsv3.DnsTable{VirtualDomains: domains(v)},
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

func domains(v *facet.View) []*dnsv3.DnsTable_DnsVirtualDomain {
	var table []*dnsv3.DnsTable_DnsVirtualDomain
	for _, n := range knownNames(v) {
		table = append(table, &dnsv3.DnsTable_DnsVirtualDomain{
			Name: n.name, AnswerTtl: durationpb.New(nameLife),
			Endpoint: &dnsv3.DnsTable_DnsEndpoint{EndpointConfig: &dnsv3.DnsTable_DnsEndpoint_AddressList{
				AddressList: &dnsv3.DnsTable_AddressList{Address: n.addresses},
			}},
		})
	}
	return table
}
