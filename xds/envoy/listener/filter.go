package listener

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	grpcwebv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// RoutedHTTP takes its routes from RDS. What routes say of faults and of CORS is
// done in front of them. Requests go to services on the port, or on any if it is 0. With web, gRPC-Web requests go on
// as gRPC, and their responses come back as gRPC-Web; other requests stay as they are.
func RoutedHTTP(v *facet.View, statPrefix, routes string, port uint16, web bool) *listenerv3.Filter {
	return resource.Filter(resource.HTTPFilter, NewRoutedHTTP(v, statPrefix, routes, port, web))
}

// NewRoutedHTTP is the same before it is a filter.
func NewRoutedHTTP(v *facet.View, statPrefix, routes string, port uint16, web bool) *hcmv3.HttpConnectionManager {
	m := newHTTP(v, statPrefix)
	if facet.ResolvesNames(v, port) {
		names := resource.DynamicNames(v.Reader.Settings().Addresses, v.Facet.Lookup)
		m.HttpFilters = append([]*hcmv3.HttpFilter{resource.DynamicHTTP(names)}, m.HttpFilters...)
	}
	m.HttpFilters = append(
		[]*hcmv3.HttpFilter{resource.InHTTP(resource.FaultFilter, &faultv3.HTTPFault{}), resource.InHTTP(resource.CORSFilter, &corsv3.Cors{})},
		m.HttpFilters...,
	)
	if web { // before faults, as in Istio; policies, which are added later, see what the client sent
		m.HttpFilters = append([]*hcmv3.HttpFilter{resource.InHTTP(resource.GRPCWebFilter, &grpcwebv3.GrpcWeb{})}, m.HttpFilters...)
	}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: resource.ADSSource(), RouteConfigName: routes}}
	return m
}

// NewInlineHTTP sends every request to one cluster of the workload itself. As with Istio's sidecars, a request whose
// connection the workload closed before the request was sent goes over another connection (G121).
func NewInlineHTTP(v *facet.View, statPrefix, cluster string) *hcmv3.HttpConnectionManager {
	m, route := newHTTP(v, statPrefix), resource.ForwardTo(cluster)
	route.GetRoute().RetryPolicy = &routev3.RetryPolicy{RetryOn: "reset-before-request", NumRetries: wrapperspb.UInt32(2)}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
		Name:             statPrefix,
		VirtualHosts:     []*routev3.VirtualHost{resource.Everything(statPrefix, route)},
		ValidateClusters: wrapperspb.Bool(false),
	}}
	return m
}

// newHTTP changes as little as a proxy can: no time limit of its own, the names
// of servers stay, websockets pass. Paths are normalized before routes and policies
// see them.
func newHTTP(v *facet.View, statPrefix string) *hcmv3.HttpConnectionManager {
	if v.Facet.Delimited {
		statPrefix = resource.Delimited(statPrefix)
	}
	router := &routerv3.Router{SuppressEnvoyHeaders: v.Facet.Extras().HTTP.NoDebugHeaders}
	m := &hcmv3.HttpConnectionManager{
		StatPrefix:                 statPrefix,
		HttpFilters:                []*hcmv3.HttpFilter{resource.InHTTP(resource.RouterFilter, router)},
		StreamIdleTimeout:          durationpb.New(0 * time.Second),
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		StripTrailingHostDot:       true,
		UpgradeConfigs:             []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
	}
	resource.SetPaths(m, v.Reader.Mesh().Paths())
	set := v.Facet.Extras().HTTP
	if set.HTTP10 {
		m.HttpProtocolOptions = &corev3.Http1ProtocolOptions{AcceptHttp_10: true}
	}
	if set.NoRequestID {
		m.GenerateRequestId = wrapperspb.Bool(false)
	}
	return m
}
