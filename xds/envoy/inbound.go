package envoy

import (
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// inboundListener gets every captured inbound connection. On ports where the
// workload's services speak HTTP it deals with requests; everything else, ports
// of the platform and unknown ports included, passes as it is.
func (b *builder) inboundListener() *listenerv3.Listener {
	l := newListener(resource.VirtualInbound, anyIPv4, resource.InboundPort)
	l.TrafficDirection = corev3.TrafficDirection_INBOUND
	l.ListenerFilters = []*listenerv3.ListenerFilter{resource.OriginalDestinationFilter()}
	l.FilterChains = []*listenerv3.FilterChain{chainForPort(resource.InboundPort, resource.TCPProxy(resource.BlackHoleCluster))}
	for _, port := range b.inboundHTTPPorts() {
		l.FilterChains = append(l.FilterChains, chainForPort(port, b.inlineHTTP(fmt.Sprintf("inbound_%d", port), resource.InboundPassthroughCluster)))
	}
	if b.facet.Identity {
		b.takeMutual(l)
	}
	l.DefaultFilterChain = &listenerv3.FilterChain{Filters: []*listenerv3.Filter{resource.TCPProxy(resource.InboundPassthroughCluster)}}
	if b.facet.IPv6 {
		alsoIPv6(l, resource.InboundPort)
	}
	return l
}

// inboundHTTPPorts are the ports on which the workload listens for HTTP. A port
// that serves a service of another protocol too is left alone, and so is one that
// only the platform's probes use.
func (b *builder) inboundHTTPPorts() []uint16 {
	http := map[uint16]bool{resource.InboundPort: false}
	for _, i := range b.reader.InstancesAt(b.facet.At()) {
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
