// Package inbound makes the listener of a sidecar for what its workload receives.
package inbound

import (
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Listener gets every captured inbound connection. On ports where the
// workload's services speak HTTP it deals with requests; everything else, ports
// of the platform and unknown ports included, passes as it is.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	if name != resource.VirtualInbound {
		return nil
	}
	l := listener.New(resource.VirtualInbound, listener.AnyIPv4, resource.InboundPort)
	l.TrafficDirection = corev3.TrafficDirection_INBOUND
	l.ListenerFilters = []*listenerv3.ListenerFilter{resource.OriginalDestinationFilter()}
	l.FilterChains = []*listenerv3.FilterChain{listener.ChainForPort(resource.InboundPort, resource.TCPProxy(resource.BlackHoleCluster))}
	for _, port := range inboundHTTPPorts(v) {
		l.FilterChains = append(l.FilterChains, listener.ChainForPort(port, listener.InlineHTTP(v, fmt.Sprintf("inbound_%d", port), resource.InboundPassthroughCluster)))
	}
	if v.Facet.Identity {
		takeMutual(v, l)
	}
	l.DefaultFilterChain = &listenerv3.FilterChain{Filters: []*listenerv3.Filter{resource.TCPProxy(resource.InboundPassthroughCluster)}}
	if v.Facet.IPv6 {
		listener.AlsoIPv6(l, resource.InboundPort)
	}
	return l
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
