package envoy

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/xds/envoy/dns"
	"isthmus.dev/isthmus/xds/envoy/edge"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/headless"
	"isthmus.dev/isthmus/xds/envoy/inbound"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/outbound"
	"isthmus.dev/isthmus/xds/envoy/proxyless"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
)

// routes builds the routes of one port, those of the explicit HTTP proxy, those of
// a gateway, or those of a gRPC client.
func routes(v *facet.View, name string) proto.Message {
	switch {
	case v.Facet.GRPC:
		return proxyless.Routes(v, name)
	case v.Facet.Scope == node.ScopeGateway:
		return edge.Routes(v, name)
	}
	plan := route.PlanFor(v, name)
	if plan == nil {
		return nil
	}
	all := make([]*routev3.VirtualHost, 0, len(plan.Hosts)+1)
	for _, h := range plan.Hosts {
		if host := route.VirtualHost(v, h); host != nil {
			all = append(all, host)
		}
	}
	return plan.Shell(all)
}

func listener(v *facet.View, name string) proto.Message {
	var l *listenerv3.Listener
	switch {
	case v.Facet.Scope == node.ScopeCapture && name == resource.VirtualOutbound:
		l = outbound.Capture(v)
	case v.Facet.Scope == node.ScopeInbound && name == resource.VirtualInbound:
		l = inbound.Listener(v)
	case v.Facet.Scope == node.ScopePods:
		l = headless.Listener(v, name)
	case v.Facet.Scope == node.ScopeNames && name == resource.NamesListener:
		l = dns.Listener(v)
	case v.Facet.Scope == node.ScopeHTTPProxy && name == resource.HTTPProxyListener(v.Facet.Port):
		l = outbound.HTTPProxy(v, name, v.Facet.Port)
	case v.Facet.Scope == node.ScopeGateway:
		l = edge.Listener(v, name)
	case v.Facet.Offers():
		l = outbound.Listener(v, name)
	}
	if l == nil {
		return nil
	}
	return l
}
