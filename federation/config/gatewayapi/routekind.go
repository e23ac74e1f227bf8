package gatewayapi

import (
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// routeKind is a kind of routes.
type routeKind struct {
	federation.Kind
	read      func(v *routeView, spec any) bool // false: the spec is of another type
	fate      string                            // of what is for a backend that cannot be used
	grpc      bool                              // its requests are those of gRPC
	datagrams bool                              // it routes datagrams, and neither requests nor connections
	mesh      bool                              // sidecars can have its routes
}

// routeKinds are the kinds of routes that are translated.
var routeKinds = []routeKind{
	{
		Kind: federation.GatewayAPI.HTTPRoute, mesh: true, fate: "requests for it get 500",
		read: reads(func(v *routeView, s *gateway.HTTPRouteSpec) {
			v.attaches(s.CommonRouteSpec, s.Hostnames)
			v.requests = func() []gateway.HTTPRouteRule { return s.Rules }
		}),
	},
	{
		Kind: federation.GatewayAPI.GRPCRoute, mesh: true, fate: "requests for it get 503", grpc: true,
		read: reads(func(v *routeView, s *gateway.GRPCRouteSpec) {
			v.attaches(s.CommonRouteSpec, s.Hostnames)
			v.requests = func() []gateway.HTTPRouteRule { return rulesOfGRPC(s.Rules) }
		}),
	},
	{
		Kind: federation.GatewayAPI.TLSRoute, fate: "its connections are closed",
		read: reads(func(v *routeView, s *gateway.TLSRouteSpec) {
			v.attaches(s.CommonRouteSpec, s.Hostnames)
			for i, rule := range s.Rules {
				v.connections(i, rule.BackendRefs)
			}
		}),
	},
	{
		Kind: federation.GatewayAPI.TCPRoute, mesh: true, fate: "its connections are closed",
		read: reads(func(v *routeView, s *gateway.TCPRouteSpec) {
			v.attaches(s.CommonRouteSpec, nil)
			for i, rule := range s.Rules {
				v.connections(i, rule.BackendRefs)
			}
		}),
	},
	{
		Kind: federation.GatewayAPI.UDPRoute, fate: "nothing is sent there", datagrams: true,
		read: reads(func(v *routeView, s *gateway.UDPRouteSpec) {
			v.attaches(s.CommonRouteSpec, nil)
			for i, rule := range s.Rules {
				v.connections(i, rule.BackendRefs)
			}
		}),
	},
}

func reads[S any](read func(*routeView, *S)) func(*routeView, any) bool {
	return func(v *routeView, spec any) bool {
		s, is := spec.(*S)
		if is {
			read(v, s)
		}
		return is
	}
}

// routesOf are the kinds of routes for which it is so.
func routesOf(is func(routeKind) bool) (kinds []federation.Kind) {
	for _, of := range routeKinds {
		if is(of) {
			kinds = append(kinds, of.Kind)
		}
	}
	return kinds
}
