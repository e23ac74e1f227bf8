package bootstrap

import (
	"net/netip"
	"path/filepath"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/xds/envoy/resource"
)

const (
	hubCluster      = "isthmus-hub"
	certificateName = "hub-certificate"
	rootsName       = "hub-roots"
	certificateFile = "sds-certificate.yaml"
	rootsFile       = "sds-roots.yaml"
)

// Limits of connections (S55).
const (
	bufferLimit      = 32 << 10
	streams          = 100
	streamWindow     = 64 << 10
	connectionWindow = 1 << 20
)

func dynamicResources() *bootstrapv3.Bootstrap_DynamicResources {
	ads := &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3, InitialFetchTimeout: durationpb.New(0),
	}
	return &bootstrapv3.Bootstrap_DynamicResources{
		AdsConfig: hubService(corev3.ApiConfigSource_DELTA_GRPC),
		CdsConfig: ads, LdsConfig: ads,
	}
}

// hubService is a stream with the hub.
func hubService(kind corev3.ApiConfigSource_ApiType) *corev3.ApiConfigSource {
	return &corev3.ApiConfigSource{
		ApiType: kind, TransportApiVersion: corev3.ApiVersion_V3, SetNodeOnFirstMessageOnly: true,
		GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: hubCluster}}}},
	}
}

// healthService has gateways probe those of other networks for the hub; nil for
// sidecars.
func (o *Options) healthService() *corev3.ApiConfigSource {
	if o.Kind == Sidecar {
		return nil
	}
	return hubService(corev3.ApiConfigSource_GRPC)
}

func (o *Options) staticResources() *bootstrapv3.Bootstrap_StaticResources {
	c := &clusterv3.Cluster{
		Name: hubCluster, ConnectTimeout: durationpb.New(5 * time.Second),
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferLimit),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: hubCluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: o.Hub.dialled()}}}},
		}}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": resource.Any(&httpv3.HttpProtocolOptions{
			UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: http2()},
			}},
		})},
	}
	if o.Hub.Path != "" {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	} else {
		c.UpstreamConnectionOptions = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{KeepaliveTime: wrapperspb.UInt32(30)}}
	}
	if o.Certificate != "" {
		c.TransportSocket = &corev3.TransportSocket{
			Name: "envoy.transport_sockets.tls",
			ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: resource.Any(&tlsv3.UpstreamTlsContext{
				Sni:              o.HubName,
				CommonTlsContext: o.mutualTLS(),
			})},
		}
	}
	return &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{c}}
}

func (e Endpoint) dialled() *corev3.Address {
	a := e.address()
	if pipe := a.GetPipe(); pipe != nil {
		pipe.Mode = 0
	}
	return a
}

func http2() *corev3.Http2ProtocolOptions {
	return &corev3.Http2ProtocolOptions{
		MaxConcurrentStreams: wrapperspb.UInt32(streams), InitialStreamWindowSize: wrapperspb.UInt32(streamWindow),
		InitialConnectionWindowSize: wrapperspb.UInt32(connectionWindow),
		ConnectionKeepalive: &corev3.KeepaliveSettings{
			Interval: durationpb.New(30 * time.Second),
			Timeout:  durationpb.New(5 * time.Second),
		},
	}
}

// mutualTLS is with the hub, which must have its name in its certificate.
func (o *Options) mutualTLS() *tlsv3.CommonTlsContext {
	c := &tlsv3.CommonTlsContext{TlsParams: &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
	}}
	names := &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{o.hubNamed()}}
	if o.Secrets == "" {
		c.TlsCertificates = []*tlsv3.TlsCertificate{o.certificate()}
		names.TrustedCa = resource.FileSource(o.HubCA)
		c.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: names}
		return c
	}
	c.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{o.fromFile(certificateName, certificateFile)}
	c.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
		DefaultValidationContext: names, ValidationContextSdsSecretConfig: o.fromFile(rootsName, rootsFile),
	}}
	return c
}

func (o *Options) hubNamed() *tlsv3.SubjectAltNameMatcher {
	m := &tlsv3.SubjectAltNameMatcher{
		SanType: tlsv3.SubjectAltNameMatcher_DNS,
		Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: o.HubName}},
	}
	if _, err := netip.ParseAddr(o.HubName); err == nil {
		m.SanType = tlsv3.SubjectAltNameMatcher_IP_ADDRESS
	}
	return m
}

func (o *Options) certificate() *tlsv3.TlsCertificate {
	return &tlsv3.TlsCertificate{CertificateChain: resource.FileSource(o.Certificate), PrivateKey: resource.FileSource(o.Key)}
}

// fileSecrets are what Envoy reads from files of its own, with the folders that
// tell of changes.
func (o *Options) fileSecrets() map[string]*tlsv3.Secret {
	certificate := o.certificate()
	certificate.WatchedDirectory = &corev3.WatchedDirectory{Path: filepath.Dir(o.Certificate)}
	return map[string]*tlsv3.Secret{
		certificateFile: {Name: certificateName, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate}},
		rootsFile: {Name: rootsName, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: resource.FileSource(o.HubCA), WatchedDirectory: &corev3.WatchedDirectory{Path: filepath.Dir(o.HubCA)},
		}}},
	}
}

func (o *Options) fromFile(name, path string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: o.secretFile(path)}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}}
}
