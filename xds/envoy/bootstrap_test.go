package envoy_test

import (
	"fmt"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"isthmus.dev/isthmus/xds/envoy"
)

// bootstrap holds all resources as static ones, so that Envoy itself judges
// them: assignments within clusters, routes within listeners made for them.
func bootstrap(t testing.TB, built map[envoy.Type][]builtResource) []byte {
	t.Helper()
	b := &bootstrapv3.Bootstrap{
		Node:            &corev3.Node{Id: "sidecar~10.0.0.1~test~test", Cluster: "test"},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{},
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{AdsConfig: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "hub"}}}},
		}},
	}
	resources := b.StaticResources
	resources.Clusters = append(resources.Clusters, staticCluster("hub", nil))
	for i, typ := range allTypes {
		for j, r := range built[typ] {
			switch m := r.message.(type) {
			case *clusterv3.Cluster:
				resources.Clusters = append(resources.Clusters, withFileSecrets(t, m))
			case *endpointv3.ClusterLoadAssignment:
				resources.Clusters = append(resources.Clusters, staticCluster("assignment "+r.name, m))
			case *listenerv3.Listener:
				resources.Listeners = append(resources.Listeners, m)
			case *routev3.RouteConfiguration:
				resources.Listeners = append(resources.Listeners, routesListener(t, m, fmt.Sprintf("127.1.%d.%d", i, j%250+1), uint32(20000+j)))
			}
		}
	}
	config, err := protojson.Marshal(b)
	if err != nil {
		t.Fatalf("writing the bootstrap: %v", err)
	}
	return config
}

// withFileSecrets takes the secrets of a cluster that does not come by EDS from a
// file: a static cluster of that sort is made before there is ADS, and Envoy's
// validation ends with a fault then. Clusters that come by CDS come later.
func withFileSecrets(t testing.TB, c *clusterv3.Cluster) *clusterv3.Cluster {
	if c.GetType() == clusterv3.Cluster_EDS || c.GetTransportSocket() == nil && len(c.GetTransportSocketMatches()) == 0 {
		return c
	}
	c = proto.CloneOf(c)
	sockets := []*corev3.TransportSocket{c.GetTransportSocket()}
	for _, m := range c.GetTransportSocketMatches() {
		sockets = append(sockets, m.GetTransportSocket())
	}
	for _, socket := range sockets {
		takeFileSecrets(t, socket)
	}
	return c
}

// takeFileSecrets does so for a socket, or for the one that it wraps.
func takeFileSecrets(t testing.TB, socket *corev3.TransportSocket) {
	if socket == nil {
		return
	}
	wrapping, tls := &proxyprotocolv3.ProxyProtocolUpstreamTransport{}, &tlsv3.UpstreamTlsContext{}
	switch {
	case socket.GetTypedConfig().UnmarshalTo(wrapping) == nil:
		takeFileSecrets(t, wrapping.GetTransportSocket())
		socket.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: pack(t, wrapping)}
	case socket.GetTypedConfig().UnmarshalTo(tls) == nil:
		common := tls.GetCommonTlsContext()
		for _, secret := range append(common.GetTlsCertificateSdsSecretConfigs(),
			common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig()) {
			if secret != nil {
				secret.SdsConfig = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: "/dev/null"}}}
			}
		}
		socket.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: pack(t, tls)}
	}
}

func staticCluster(name string, a *endpointv3.ClusterLoadAssignment) *clusterv3.Cluster {
	if a != nil {
		a = proto.Clone(a).(*endpointv3.ClusterLoadAssignment)
		a.ClusterName = name
	}
	return &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(1e9), LoadAssignment: a,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
	}
}

func routesListener(t testing.TB, routes *routev3.RouteConfiguration, address string, port uint32) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: "routes " + routes.GetName(),
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, &hcmv3.HttpConnectionManager{
				StatPrefix:     "routes",
				RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes},
				HttpFilters: []*hcmv3.HttpFilter{{
					Name:       "router",
					ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &routerv3.Router{})},
				}},
			})},
		}}}},
	}
}

func pack(t testing.TB, m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatalf("packing: %v", err)
	}
	return packed
}
