// Package inbound makes the listener of a sidecar for what its workload receives.
package inbound

import (
	"maps"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Listener gets every captured inbound connection. On ports where the
// workload's services speak HTTP it deals with requests; everything else, ports
// of the platform and unknown ports included, passes as it is. PeerAuthentications say which
// connections must be mutual TLS; policies decide about all of them.
func Listener(v *facet.View, name string) *listenerv3.Listener {
	if name != resource.VirtualInbound {
		return nil
	}
	l := listener.New(resource.VirtualInbound, listener.AnyIPv4, resource.InboundPort)
	l.TrafficDirection = corev3.TrafficDirection_INBOUND
	l.ListenerFilters = []*listenerv3.ListenerFilter{resource.OriginalDestinationFilter()}
	l.FilterChains = []*listenerv3.FilterChain{listener.ChainForPort(resource.InboundPort, resource.TCPProxy(resource.BlackHoleCluster))}
	server := server{view: v, policies: authorization.For(v), modes: authentication.ModesOf(v), tokens: authentication.TokensOf(v), http: httpPorts(v)}
	mutual := server.mutual()
	l.FilterChains = append(append(l.FilterChains, server.plain()...), mutual...)
	l.DefaultFilterChain = server.others()
	server.reportClosed()
	if len(mutual) > 0 || server.policies.AskServerName() {
		detectTLS(l)
	}
	if v.Facet.IPv6 {
		listener.AlsoIPv6(l, resource.InboundPort)
	}
	return l
}

// detectTLS finds the server name and the protocols of callers that speak TLS. A caller
// that lets the server speak first waits for it.
func detectTLS(l *listenerv3.Listener) {
	l.ListenerFilters = append(l.ListenerFilters, resource.TLSInspectorFilter())
	l.ListenerFiltersTimeout, l.ContinueOnListenerFiltersTimeout = durationpb.New(listener.Detection), true
}

// httpPorts are the ports on which the workload listens for HTTP. A port
// that serves a service of another protocol too is left alone, and so is one that
// only the platform's probes use.
func httpPorts(v *facet.View) map[uint16]bool {
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
	return http
}
