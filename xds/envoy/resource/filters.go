package resource

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	filterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	httpinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	originalsrcv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_src/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	setfilterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/federation"
)

// The names of the filters; Envoy finds filters by the type of their config.
const (
	TCPProxyFilter    = "envoy.filters.network.tcp_proxy"
	HTTPFilter        = "envoy.filters.network.http_connection_manager"
	RouterFilter      = "envoy.filters.http.router"
	FaultFilter       = "envoy.filters.http.fault"
	CORSFilter        = "envoy.filters.http.cors"
	GRPCWebFilter     = "envoy.filters.http.grpc_web"
	GRPCStatsFilter   = "envoy.filters.http.grpc_stats"
	originalDstFilter = "envoy.filters.listener.original_dst"
	originalSrcFilter = "envoy.filters.listener.original_src"
	TLSInspector      = "envoy.filters.listener.tls_inspector"
	proxyProtocol     = "envoy.filters.listener.proxy_protocol"
	httpInspector     = "envoy.filters.listener.http_inspector"
	setFilterState    = "envoy.filters.network.set_filter_state"
)

// The names of the filters of authorization: for requests and connections, by rules and by a provider.
const (
	RBACFilter        = "envoy.filters.http.rbac"
	ProviderFilter    = "envoy.filters.http.ext_authz"
	TCPRBACFilter     = "envoy.filters.network.rbac"
	TCPProviderFilter = "envoy.filters.network.ext_authz"
)

// tcpConnectAttempts is how many endpoints a TCP connection tries.
const tcpConnectAttempts = 3

// TCPProxy sends connections to the cluster.
func TCPProxy(cluster string) *listenerv3.Filter {
	return Filter(TCPProxyFilter, NewTCP(cluster))
}

// NewTCP is a TCP proxy in front of the cluster.
func NewTCP(cluster string) *tcpproxyv3.TcpProxy {
	return &tcpproxyv3.TcpProxy{
		StatPrefix:         cluster,
		ClusterSpecifier:   &tcpproxyv3.TcpProxy_Cluster{Cluster: cluster},
		MaxConnectAttempts: wrapperspb.UInt32(tcpConnectAttempts),
	}
}

// OfferFilter has connections that are passed on offer the protocol by ALPN, if they are TLS.
func OfferFilter(protocol string) *listenerv3.Filter {
	return Filter(setFilterState, &setfilterstatev3.Config{OnNewConnection: []*filterstatev3.FilterStateValue{{
		Key: &filterstatev3.FilterStateValue_ObjectKey{ObjectKey: applicationProtocols},
		Value: &filterstatev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: protocol},
			}},
		}},
	}}})
}

// applicationProtocols is the filter state that replaces the protocols of upstream TLS.
const applicationProtocols = "envoy.network.application_protocols"

// InHTTP is an HTTP filter with its configuration.
func InHTTP(name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: Any(config)}}
}

// Filter is a network filter with its configuration.
func Filter(name string, config proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: Any(config)}}
}

// HTTPInspectorFilter detects whether a connection is HTTP.
func HTTPInspectorFilter() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: httpInspector, ConfigType: &listenerv3.ListenerFilter_TypedConfig{
		TypedConfig: Any(&httpinspectorv3.HttpInspector{}),
	}}
}

// HTTPProtocols is what the HTTP inspector calls HTTP.
func HTTPProtocols() []string { return []string{"http/1.0", "http/1.1", "h2c"} }

// OriginalDestinationFilter finds where a redirected connection was going.
func OriginalDestinationFilter() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: originalDstFilter, ConfigType: &listenerv3.ListenerFilter_TypedConfig{
		TypedConfig: Any(&originaldstv3.OriginalDst{}),
	}}
}

// OriginalSourceFilter has upstream connections come from the address of the caller, marked as the proxy's.
func OriginalSourceFilter() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: originalSrcFilter, ConfigType: &listenerv3.ListenerFilter_TypedConfig{
		TypedConfig: Any(&originalsrcv3.OriginalSrc{Mark: captureMark}),
	}}
}

// captureMark is the mark by which Istio's capture rules know connections of the proxy.
const captureMark = 1337

// TLSInspectorFilter finds the server name and the protocols that a ClientHello
// asks for.
func TLSInspectorFilter() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: TLSInspector, ConfigType: &listenerv3.ListenerFilter_TypedConfig{
		TypedConfig: Any(&tlsinspectorv3.TlsInspector{}),
	}}
}

// ProxyProtocolFilter takes the addresses of a connection from the header of the PROXY protocol before it.
func ProxyProtocolFilter() *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: proxyProtocol, ConfigType: &listenerv3.ListenerFilter_TypedConfig{
		TypedConfig: Any(&proxyprotocolv3.ProxyProtocol{}),
	}}
}

// SetPaths has Envoy normalize paths.
func SetPaths(m *hcmv3.HttpConnectionManager, how federation.PathNormalization) {
	m.NormalizePath = wrapperspb.Bool(how != federation.NormalizeNone)
	m.MergeSlashes = how == federation.NormalizeMergeSlashes || how == federation.NormalizeDecodeAndMergeSlashes
	if how == federation.NormalizeDecodeAndMergeSlashes {
		m.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_UNESCAPE_AND_FORWARD
	}
}
