package envoy

import (
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	httpinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// The names of the filters; Envoy finds filters by the type of their config.
const (
	tcpProxyFilter    = "envoy.filters.network.tcp_proxy"
	httpFilter        = "envoy.filters.network.http_connection_manager"
	routerFilter      = "envoy.filters.http.router"
	faultFilter       = "envoy.filters.http.fault"
	corsFilter        = "envoy.filters.http.cors"
	originalDstFilter = "envoy.filters.listener.original_dst"
	tlsInspector      = "envoy.filters.listener.tls_inspector"
	httpInspector     = "envoy.filters.listener.http_inspector"
)

// tcpConnectAttempts is how many endpoints a TCP connection tries.
const tcpConnectAttempts = 3

func tcpProxy(cluster string) *listenerv3.Filter {
	return filter(tcpProxyFilter, newTCP(cluster))
}

// routedHTTP takes its routes from RDS. What routes say of faults and of CORS is
// done in front of them.
func (b *builder) routedHTTP(statPrefix, routes string) *listenerv3.Filter {
	return filter(httpFilter, b.newRoutedHTTP(statPrefix, routes))
}

func (b *builder) newRoutedHTTP(statPrefix, routes string) *hcmv3.HttpConnectionManager {
	m := b.newHTTP(statPrefix)
	m.HttpFilters = append([]*hcmv3.HttpFilter{inHTTP(faultFilter, &faultv3.HTTPFault{}), inHTTP(corsFilter, &corsv3.Cors{})}, m.HttpFilters...)
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: resource.ADSSource(), RouteConfigName: routes}}
	return m
}

// inlineHTTP sends every request to one cluster.
func (b *builder) inlineHTTP(statPrefix, cluster string) *listenerv3.Filter {
	return filter(httpFilter, b.newInlineHTTP(statPrefix, cluster))
}

func (b *builder) newInlineHTTP(statPrefix, cluster string) *hcmv3.HttpConnectionManager {
	m := b.newHTTP(statPrefix)
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
		Name:             statPrefix,
		VirtualHosts:     []*routev3.VirtualHost{everything(statPrefix, forward(cluster))},
		ValidateClusters: wrapperspb.Bool(false),
	}}
	return m
}

// newHTTP changes as little as a proxy can: no time limit of its own, the names
// of servers stay, websockets pass. Paths are normalized before routes and policies
// see them.
func (b *builder) newHTTP(statPrefix string) *hcmv3.HttpConnectionManager {
	m := &hcmv3.HttpConnectionManager{
		StatPrefix:                 statPrefix,
		HttpFilters:                []*hcmv3.HttpFilter{inHTTP(routerFilter, &routerv3.Router{})},
		StreamIdleTimeout:          durationpb.New(0 * time.Second),
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		StripTrailingHostDot:       true,
		UpgradeConfigs:             []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
	}
	setPaths(m, b.reader.Mesh().Paths())
	return m
}

// setPaths has Envoy normalize paths.
func setPaths(m *hcmv3.HttpConnectionManager, how federation.PathNormalization) {
	m.NormalizePath = wrapperspb.Bool(how != federation.NormalizeNone)
	m.MergeSlashes = how == federation.NormalizeMergeSlashes || how == federation.NormalizeDecodeAndMergeSlashes
	if how == federation.NormalizeDecodeAndMergeSlashes {
		m.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_UNESCAPE_AND_FORWARD
	}
}

func inHTTP(name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: resource.Any(config)}}
}

func filter(name string, config proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: resource.Any(config)}}
}

func httpInspectorFilter() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: httpInspector, ConfigType: &listenerv3.ListenerFilter_TypedConfig{
		TypedConfig: resource.Any(&httpinspectorv3.HttpInspector{}),
	}}
}

func originalDestinationFilter() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: originalDstFilter, ConfigType: &listenerv3.ListenerFilter_TypedConfig{
		TypedConfig: resource.Any(&originaldstv3.OriginalDst{}),
	}}
}
