package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuidv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	detectorsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/resource_detectors/v3"
	tagv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	mesh "istio.io/api/mesh/v1alpha1"
	api "istio.io/api/telemetry/v1alpha1"

	"isthmus.dev/isthmus/xds/envoy/extension"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// defaultSampling is the share of traced requests in per cent, as with Istio.
const defaultSampling = 1

// spanTimeout is how long a request with spans may take, as with Istio.
const spanTimeout = 3 * time.Second

// tracing is how requests are traced; the zero value: not at all.
type tracing struct {
	how       *hcmv3.HttpConnectionManager_Tracing
	requestID *hcmv3.RequestIDExtension // nil: Envoy's own
}

// requestID has the tracer decide which requests are sampled, and not their IDs, if the objects say so.
func requestID(from *api.Tracing) *hcmv3.RequestIDExtension {
	if from.GetUseRequestIdForTraceSampling() == nil || from.GetUseRequestIdForTraceSampling().GetValue() {
		return nil
	}
	return &hcmv3.RequestIDExtension{TypedConfig: resource.Any(&uuidv3.UuidRequestIdConfig{UseRequestIdForTraceSampling: wrapperspb.Bool(false)})}
}

// tracingBy has spans sent to the provider.
func tracingBy(v *facet.View, name string) (*hcmv3.HttpConnectionManager_Tracing, error) {
	p, err := extension.Named(v, name)
	if err != nil {
		return nil, err
	}
	var t *hcmv3.HttpConnectionManager_Tracing
	switch {
	case p.GetZipkin() != nil:
		z := p.GetZipkin()
		var at extension.Server
		at, err = extension.ServerOf(v, z)
		t = toZipkin(at, z)
	case p.GetOpentelemetry() != nil:
		o := p.GetOpentelemetry()
		var at extension.Server
		at, err = extension.ServerOf(v, o)
		t = toOpenTelemetry(at, o, v.Facet.Extras().Traced)
	default:
		err = errors.New("it does not trace: use zipkin or opentelemetry")
	}
	if err != nil {
		return nil, fmt.Errorf("the provider %q of MeshSettings cannot be used: %w", name, err)
	}
	return t, nil
}

func toZipkin(at extension.Server, z *mesh.MeshConfig_ExtensionProvider_ZipkinTracingProvider) *hcmv3.HttpConnectionManager_Tracing {
	path := orDefault(z.GetPath(), "/api/v2/spans")
	config := &tracev3.ZipkinConfig{
		CollectorCluster: at.Cluster, CollectorHostname: at.Host, CollectorEndpoint: path,
		CollectorEndpointVersion: tracev3.ZipkinConfig_HTTP_JSON, TraceId_128Bit: !z.GetEnable_64BitTraceId(),
		SharedSpanContext: wrapperspb.Bool(false),
	}
	if z.GetTraceContextOption() == mesh.MeshConfig_ExtensionProvider_ZipkinTracingProvider_USE_B3_WITH_W3C_PROPAGATION {
		config.TraceContextOption = tracev3.ZipkinConfig_USE_B3_WITH_W3C_PROPAGATION
	}
	if z.GetTimeout() != nil || len(z.GetHeaders()) > 0 { // Envoys that do not have it use the fields above
		config.CollectorService = requestsTo(at, path, z.GetTimeout(), z.GetHeaders())
	}
	return tracer("envoy.tracers.zipkin", config, z.GetMaxTagLength())
}

func toOpenTelemetry(at extension.Server, o *mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider,
	traced string,
) *hcmv3.HttpConnectionManager_Tracing {
	config := &tracev3.OpenTelemetryConfig{ServiceName: traced}
	if to := o.GetHttp(); to != nil {
		config.HttpService = requestsTo(at, to.GetPath(), to.GetTimeout(), to.GetHeaders())
	} else {
		config.GrpcService = grpcTo(at)
		config.GrpcService.Timeout = o.GetGrpc().GetTimeout()
		config.GrpcService.InitialMetadata = headersOf(o.GetGrpc().GetInitialMetadata())
	}
	if o.GetResourceDetectors().GetEnvironment() != nil {
		config.ResourceDetectors = append(config.GetResourceDetectors(), detector("environment", &detectorsv3.EnvironmentResourceDetectorConfig{}))
	}
	if o.GetResourceDetectors().GetDynatrace() != nil {
		config.ResourceDetectors = append(config.GetResourceDetectors(), detector("dynatrace", &detectorsv3.DynatraceResourceDetectorConfig{}))
	}
	return tracer("envoy.tracers.opentelemetry", config, o.GetMaxTagLength())
}

func detector(name string, config proto.Message) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{
		Name: "envoy.tracers.opentelemetry.resource_detectors." + name, TypedConfig: resource.Any(config),
	}
}

// requestsTo are requests with spans over HTTP.
func requestsTo(at extension.Server, path string, timeout *durationpb.Duration,
	headers []*mesh.MeshConfig_ExtensionProvider_HttpHeader,
) *corev3.HttpService {
	to := &corev3.HttpService{HttpUri: &corev3.HttpUri{
		Uri: "http://" + at.Host + path, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: at.Cluster},
		Timeout: cmp.Or(timeout, durationpb.New(spanTimeout)),
	}}
	for _, h := range headersOf(headers) {
		to.RequestHeadersToAdd = append(to.RequestHeadersToAdd, &corev3.HeaderValueOption{
			Header: h, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return to
}

// headersOf are the headers as they are written: a percent sign begins no operator.
func headersOf(headers []*mesh.MeshConfig_ExtensionProvider_HttpHeader) (all []*corev3.HeaderValue) {
	for _, h := range headers {
		all = append(all, &corev3.HeaderValue{Key: strings.ToLower(h.GetName()), Value: strings.ReplaceAll(h.GetValue(), "%", "%%")})
	}
	return all
}

func tracer(name string, config proto.Message, tagLength uint32) *hcmv3.HttpConnectionManager_Tracing {
	t := &hcmv3.HttpConnectionManager_Tracing{
		Provider: &tracev3.Tracing_Http{Name: name, ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: resource.Any(config)}},
	}
	if tagLength > 0 {
		t.MaxPathTagLength = wrapperspb.UInt32(tagLength)
	}
	return t
}

// complete adds what the objects say. If they do not say which share of requests is traced, the proxy's settings do.
func complete(t *hcmv3.HttpConnectionManager_Tracing, from *api.Tracing, ofProxy float64) *hcmv3.HttpConnectionManager_Tracing {
	share := cmp.Or(ofProxy, defaultSampling)
	if said := from.GetRandomSamplingPercentage(); said != nil {
		share = said.GetValue()
	}
	t.ClientSampling, t.OverallSampling = &typev3.Percent{Value: 100}, &typev3.Percent{Value: 100}
	t.RandomSampling = &typev3.Percent{Value: min(max(share, 0), 100)}
	t.NoContextPropagation = from.GetDisableContextPropagation().GetValue()
	for _, name := range slices.Sorted(maps.Keys(from.GetCustomTags())) {
		if tag := tagOf(name, from.GetCustomTags()[name]); tag != nil && CheckTag(from.GetCustomTags()[name]) == nil {
			t.CustomTags = append(t.CustomTags, tag)
		}
	}
	return t
}

// CheckTag reports a tag that Envoy would refuse.
func CheckTag(tag *api.Tracing_CustomTag) error {
	if f := tag.GetFormatter(); f != nil {
		return CheckFormat(f.GetValue())
	}
	return nil
}

func tagOf(name string, tag *api.Tracing_CustomTag) *tagv3.CustomTag {
	out := &tagv3.CustomTag{Tag: name}
	switch of := tag.GetType().(type) {
	case *api.Tracing_CustomTag_Literal:
		out.Type = &tagv3.CustomTag_Literal_{Literal: &tagv3.CustomTag_Literal{Value: of.Literal.GetValue()}}
	case *api.Tracing_CustomTag_Environment:
		out.Type = &tagv3.CustomTag_Environment_{
			Environment: &tagv3.CustomTag_Environment{Name: of.Environment.GetName(), DefaultValue: of.Environment.GetDefaultValue()},
		}
	case *api.Tracing_CustomTag_Header:
		out.Type = &tagv3.CustomTag_RequestHeader{RequestHeader: &tagv3.CustomTag_Header{
			Name:         of.Header.GetName(),
			DefaultValue: of.Header.GetDefaultValue(),
		}}
	case *api.Tracing_CustomTag_Formatter:
		out.Type = &tagv3.CustomTag_Value{Value: of.Formatter.GetValue()}
	}
	if out.ValidateAll() != nil || out.GetType() == nil {
		return nil
	}
	return out
}
