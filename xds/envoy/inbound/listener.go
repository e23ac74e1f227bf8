// Package inbound makes the listener of a sidecar for what its workload receives.
package inbound

import (
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Listener gets every captured inbound connection. On ports where the
// workload's services speak HTTP it deals with requests; everything else, ports
// of the platform and unknown ports included, passes as it is. Policies decide about all
// of it.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	if name != resource.VirtualInbound {
		return nil
	}
	l := listener.New(resource.VirtualInbound, listener.AnyIPv4, resource.InboundPort)
	l.TrafficDirection = corev3.TrafficDirection_INBOUND
	l.ListenerFilters = []*listenerv3.ListenerFilter{resource.OriginalDestinationFilter()}
	l.FilterChains = []*listenerv3.FilterChain{listener.ChainForPort(resource.InboundPort, resource.TCPProxy(resource.BlackHoleCluster))}
	policies := authorization.For(v)
	for _, port := range inboundHTTPPorts(v) {
		l.FilterChains = append(l.FilterChains, listener.ChainForPort(port, resource.Filter(resource.HTTPFilter, inboundHTTP(v, policies, port))))
	}
	switch {
	case v.Facet.Identity:
		takeMutual(v, policies, l)
	case policies.AskServerName():
		detectTLS(l)
	}
	l.DefaultFilterChain = &listenerv3.FilterChain{Filters: []*listenerv3.Filter{resource.TCPProxy(resource.InboundPassthroughCluster)}}
	for _, chain := range append(l.FilterChains[1:len(l.FilterChains):len(l.FilterChains)], l.DefaultFilterChain) {
		policies.Connections(chain)
		policies.Made(v, chain)
	}
	if v.Facet.IPv6 {
		listener.AlsoIPv6(l, resource.InboundPort)
	}
	return l
}

// inboundHTTP passes the requests to the port that policies allow.
func inboundHTTP(v *facet.View, policies *authorization.Policies, port uint16) *hcmv3.HttpConnectionManager {
	m := listener.NewInlineHTTP(v, fmt.Sprintf("inbound_%d", port), resource.InboundPassthroughCluster)
	policies.Requests(m)
	return m
}

// detectTLS finds the server name and the protocols of callers that speak TLS. A caller
// that lets the server speak first waits for it.
func detectTLS(l *listenerv3.Listener) {
	l.ListenerFilters = append(l.ListenerFilters, resource.TLSInspectorFilter())
	l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(listener.Detection), true
}

// inboundHTTPPorts are the ports on which the workload listens for HTTP. A port
// that serves a service of another protocol too is left alone, and so is one that
// only the platform's probes use.
func inboundHTTPPorts(v *facet.View) []uint16 {
	http := map[uint16]bool{resource.InboundPort: false}
	for _, i := range v.Reader.At(v.Facet.At()).Instances() {
		if i.Port.Protocol.Transport() != federation.TransportTCP || i.Number == 0 {
			continue
		}
		if still, known := http[i.Number]; !known || still {
			http[i.Number] = i.Port.Protocol.IsHTTP()
		}
	}
	maps.DeleteFunc(http, func(_ uint16, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(http))
}
