// Package inbound makes the listener of a sidecar for what its workload receives.
package inbound

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/authorization"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Listener gets every captured inbound connection. On ports where the
// workload's services speak HTTP, or callers turn out to do so, it deals with requests; everything else, ports
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
	server := server{
		view: v, policies: authorization.For(v), modes: authentication.ModesOf(v), tokens: authentication.TokensOf(v), speech: speechOf(v),
	}
	mutual := server.mutual()
	l.FilterChains = append(append(l.FilterChains, server.plain()...), mutual...)
	l.DefaultFilterChain = server.others()
	server.reportClosed()
	if len(mutual) > 0 || server.policies.AskServerName() {
		listener.Detect(v, l, resource.TLSInspectorFilter())
	}
	if ports := server.inspected(); len(ports) > 0 {
		listener.Detect(v, l, inspectOn(ports))
	}
	if v.Facet.IPv6 {
		listener.AlsoIPv6(l, resource.InboundPort)
	}
	return l
}
