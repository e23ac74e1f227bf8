package outbound

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/listener"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// Capture gets every captured outbound connection and hands it to the
// listener of its destination; what has none goes on. Who
// dials the port itself would be sent around in a circle and gets nothing.
func Capture(v *facet.View, name string) *listenerv3.Listener {
	if name != resource.VirtualOutbound {
		return nil
	}
	l := listener.New(resource.VirtualOutbound, listener.AnyIPv4, resource.OutboundPort)
	l.UseOriginalDst = wrapperspb.Bool(true)
	if v.Facet.Transparent {
		l.Transparent = wrapperspb.Bool(true)
	}
	l.FilterChains = []*listenerv3.FilterChain{
		listener.ChainForPort(resource.OutboundPort, resource.TCPProxy(resource.BlackHoleCluster)),
		{Filters: []*listenerv3.Filter{listener.PassOn(v)}},
	}
	if v.Facet.IPv6 {
		listener.AlsoIPv6(l, resource.OutboundPort)
	}
	reportLost(v)
	reportRefused(v)
	return l
}

// reportLost says that the egress proxy does not exist.
func reportLost(v *facet.View) {
	if o := node.SidecarIn(v.Facet, v.Reader); o != nil && v.Facet.EgressProxy == resource.BlackHoleCluster &&
		v.Facet.Outbound != federation.RegistryOnly {
		v.LeaveOut(resource.Reason{
			Code: resource.ReasonNoDestination, Cause: o.Key,
			Message: o.Key.Title() +
				": the egress proxy is not a service with that port and subset that this proxy sees: connections to unknown hosts are closed",
		})
	}
}

// HTTPProxy is the explicit HTTP proxy of the workload.
func HTTPProxy(v *facet.View, name string) *listenerv3.Listener {
	if name != resource.HTTPProxyListener(v.Facet.Port) {
		return nil
	}
	l := listener.New(name, "127.0.0.1", v.Facet.Port)
	l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{listener.RoutedHTTP(v, resource.HTTPProxyRoutes,
		resource.HTTPProxyRoutes, 0, false)}}}
	return l
}
