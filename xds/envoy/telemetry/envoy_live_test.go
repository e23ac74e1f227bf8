package telemetry

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	mesh "istio.io/api/mesh/v1alpha1"
	api "istio.io/api/telemetry/v1alpha1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/envoy/extension"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// samples has an expression with each function that proxies have.
var samples = map[string]string{
	"_?_:_": "true ? false : true", "_&&_": "true && false", "_||_": "true || false", "!_": "!true", "_==_": "response.code == 200",
	"_!=_": "response.code != 200",
	"_<_":  "1 < 2", "_<=_": "1 <= 2", "_>_": "1 > 2", "_>=_": "1 >= 2", "_+_": "1 + 1 == 2", "_-_": "1 - 1 == 0", "_*_": "1 * 1 == 1",
	"_/_": "1 / 1 == 1", "_%_": "1 % 1 == 1", "-_": "-response.code == 1",
	"_[_]": "request.headers['a'] == 'b'", "@in": "response.code in [200, 204]", "size": "size(request.path) > 1",
	"contains":   "request.path.contains('a')",
	"startsWith": "request.path.startsWith('a')", "endsWith": "request.path.endsWith('a')", "matches": "request.path.matches('a.*')",
	"int": "int('1') == 1", "uint": "uint('1') == 1u", "double": "double('1') == 1.0",
	"timestamp": "timestamp('2024-01-01T00:00:00Z') < request.time", "duration": "duration('1s') < request.duration",
	"getFullYear": "request.time.getFullYear() == 1", "getMonth": "request.time.getMonth() == 1", "getDate": "request.time.getDate() == 1",
	"getDayOfMonth": "request.time.getDayOfMonth() == 1",
	"getDayOfWeek":  "request.time.getDayOfWeek() == 1", "getDayOfYear": "request.time.getDayOfYear() == 1",
	"getHours": "request.time.getHours() == 1", "getMinutes": "request.time.getMinutes() == 1",
	"getSeconds": "request.time.getSeconds() == 1", "getMilliseconds": "request.time.getMilliseconds() == 1",
}

// withArguments has formats with each operator that has arguments.
var withArguments = []string{
	"%START_TIME(%s%3f)%", "[%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%] %START_TIME_LOCAL(%s)%", "%EMIT_TIME(%s.%9f)% %EMIT_TIME_LOCAL(%H)%",
	"%DOWNSTREAM_PEER_CERT_V_START(%b %d %H:%M:%S %Y %Z)% %UPSTREAM_PEER_CERT_V_END(%s)%",
	"%FILTER_STATE(wasm.upstream_peer)% %FILTER_STATE(a:PLAIN):7% %UPSTREAM_FILTER_STATE(a:TYPED)% %FILTER_STATE(a:FIELD:b)%",
	"%REQUEST_HEADER(a?b.c):3% %RESPONSE_HEADER(a)% %RESPONSE_TRAILER(a)%", "%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH):9%",
	"%METADATA(DYNAMIC:a:b/c):3% %METADATA(CLUSTER:a)% %METADATA(ROUTE:a)% %METADATA(UPSTREAM_HOST:a)%",
	"%METADATA(LISTENER:a)% %METADATA(VIRTUAL_HOST:a)% %METADATA(LISTENER_FILTER_CHAIN:a)% %UPSTREAM_METADATA(a:b)% %ENVIRONMENT(A):3%",
	"%QUERY_PARAM(a):3% %QUERY_PARAMS(ORIG)% %QUERY_PARAMS(DECODED):8% %QUERY_PARAMS:8%", "%PATH% %PATH(NQ):8% %PATH(WQ:ORIG_OR_PATH)%",
	"%PATH(WQ:ORIG)% %PATH(NQ:PATH)%", "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:ms)% %COMMON_DURATION(a:b:us)% %COMMON_DURATION(a:b:ns)%",
	"%GRPC_STATUS(CAMEL_STRING)% %GRPC_STATUS(SNAKE_STRING)% %GRPC_STATUS(NUMBER)%", "%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%",
	"%REQUESTED_SERVER_NAME(SNI_ONLY)% %REQUESTED_SERVER_NAME(SNI_FIRST:ORIG)% %REQUESTED_SERVER_NAME(HOST_FIRST:HOST)%",
	"%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(16)% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT(24)% %UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(64)%",
	"%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(8)% %DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT(8)% %UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(8)%",
}

// TestK27EnvoyAcceptsWhatTheCheckAccepts: each function and operator that the check lets pass is one
// that a real Envoy has, for requests and for connections.
func TestK27EnvoyAcceptsWhatTheCheckAccepts(t *testing.T) {
	l := &listenerv3.Listener{
		Name: "all", Address: resource.SocketAddress("127.0.0.1", 1),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{resource.TCPProxy("none")}}},
	}
	var logs []logger
	for _, name := range functions {
		if samples[name] == "" {
			t.Errorf("there is no expression with %s", name)
		}
	}
	for _, expression := range samples {
		if err := CheckExpression(expression); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
		logs = append(logs, logOf(t, "%START_TIME%", expression))
	}
	for _, operator := range resource.PlainOperators {
		logs = append(logs, logOf(t, "%"+operator+"%", ""))
	}
	for _, expression := range samples {
		if !strings.Contains(expression, "%") {
			logs = append(logs, logOf(t, "%CEL("+expression+")% %TYPED_CEL("+expression+"):9%", ""))
		}
	}
	for _, format := range withArguments {
		logs = append(logs, logOf(t, format, ""), labelled(t, &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStringValue(format)}}))
	}
	logs = append(logs, labelled(t, &structpb.Struct{}), logOf(t, defaultFormat, ""),
		logOf(t,
			"%REQ(A?:B):7% %RESP(x)% %TRAILER(y)% %DYNAMIC_METADATA(a.b:c:d)% %CLUSTER_METADATA(a:b)% %DYNAMIC_METADATA(a:b):3% %ENVIRONMENT(A_B)% 100%%", "has(request.useragent)"))
	for _, log := range logs {
		add(l.FilterChains[0].Filters[0], []logger{log}, tracing{})
	}
	requests := &listenerv3.Listener{
		Name: "requests", Address: resource.SocketAddress("127.0.0.1", 2),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{withFormats(t)}}},
	}
	config,
		err := protojson.Marshal(&bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{Listeners: []*listenerv3.Listener{l, requests}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := testbed.ValidateEnvoy(t, config); err != nil {
		t.Error(err)
	}
}

// withFormats has formats as values of headers and as tags of spans.
func withFormats(t *testing.T) *listenerv3.Filter {
	t.Helper()
	var headers []*corev3.HeaderValueOption
	said := &api.Tracing{CustomTags: map[string]*api.Tracing_CustomTag{}}
	for i, format := range append(slices.Clone(withArguments), "%"+strings.Join(resource.PlainOperators, "% %")+"%") {
		if strings.Contains(format, withoutQuery) {
			continue // for logs only
		}
		tag := &api.Tracing_CustomTag{Type: &api.Tracing_CustomTag_Formatter{Formatter: &api.Tracing_Formatter{Value: format}}}
		if err := CheckTag(tag); err != nil {
			t.Error(err)
		}
		said.CustomTags[fmt.Sprint("tag", i)] = tag
		headers = append(headers, &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: "a", Value: format}})
	}
	f := resource.Filter(resource.HTTPFilter, &hcmv3.HttpConnectionManager{
		StatPrefix: "test", HttpFilters: []*hcmv3.HttpFilter{resource.InHTTP(resource.RouterFilter, &routerv3.Router{})},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			RequestHeadersToAdd: headers, ResponseHeadersToAdd: headers,
		}},
	})
	add(f, nil, tracing{how: complete(&hcmv3.HttpConnectionManager_Tracing{}, said, 0)})
	return f
}

// received is a request that a collector got.
type received struct {
	path   string
	header http.Header
	body   string
}

// sentBy has a real Envoy trace a request that has the header x-tag, and returns the first spans that it sends to the cluster "collector".
func sentBy(t *testing.T, traces tracing) received {
	t.Helper()
	spans := make(chan received, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case spans <- received{r.URL.Path, r.Header, string(body)}:
		default: // the first ones are enough
		}
	}))
	t.Cleanup(collector.Close)
	at := netip.MustParseAddrPort(collector.Listener.Addr().String())
	port := testbed.FreePort(t, nil, netip.MustParseAddr("127.0.0.1"))
	answer := &routev3.Route{
		Match:  resource.AnyPath(),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: http.StatusTeapot}},
	}
	m := &hcmv3.HttpConnectionManager{
		StatPrefix: "test", HttpFilters: []*hcmv3.HttpFilter{resource.InHTTP(resource.RouterFilter, &routerv3.Router{})},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{answer}}}}},
	}
	f := resource.Filter(resource.HTTPFilter, m)
	add(f, nil, traces)
	to := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: resource.SocketAddress(at.Addr().String(), at.Port())}}}
	config, err := protojson.Marshal(&bootstrapv3.Bootstrap{
		Node: &corev3.Node{Id: "n", Cluster: "web.shop"},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{
			Clusters: []*clusterv3.Cluster{{
				Name: "collector", ConnectTimeout: durationpb.New(time.Second),
				LoadAssignment: &endpointv3.ClusterLoadAssignment{
					ClusterName: "collector",
					Endpoints:   []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{to}}},
				},
			}},
			Listeners: []*listenerv3.Listener{{
				Name: "l", Address: resource.SocketAddress("127.0.0.1", uint16(port)),
				FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{f}}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Config: config}).WaitReady(time.Minute)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/path", port), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Tag", "said")
	var got received
	testbed.WaitFor(t, time.Minute, "a span", func() error { // those that fail to be sent are not sent again
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		select {
		case got = <-spans:
			return nil
		default:
			return errors.New("none was sent")
		}
	})
	return got
}

var collecting = extension.Server{Cluster: "collector", Host: "collector"}

// TestK26SpansHaveTheirTags: a real Envoy sends the spans of requests to a server of Zipkin's API.
func TestK26SpansHaveTheirTags(t *testing.T) {
	said := &api.Tracing{}
	if err := protojson.Unmarshal([]byte(`{"randomSamplingPercentage": 100, "customTags": {"a": {"literal": {"value": "fixed"}}, "b": {"header": {"name": "x-tag"}},
		"c": {"environment": {"name": "NO_SUCH_VARIABLE", "defaultValue": "unset"}}, "d": {"formatter": {"value": "%RESPONSE_CODE%"}}, "e": {"formatter": {"value": "%NO_SUCH_OPERATOR%"}}}}`), said); err != nil {
		t.Fatal(err)
	}
	got := sentBy(t, tracing{how: complete(toZipkin(collecting, &mesh.MeshConfig_ExtensionProvider_ZipkinTracingProvider{}), said, 0.5)})
	if got.path != "/api/v2/spans" {
		t.Errorf("the spans were sent to %s", got.path)
	}
	// G129: without a decorator, Envoy names a span of Zipkin as the host of the request.
	for _, want := range []string{`"name":"127.0.0.1:`, `"a":"fixed"`, `"b":"said"`, `"c":"unset"`, `"d":"418"`, `"serviceName":"web.shop"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
}

// TestG110TracersDoAsTheirProvidersSay: real Envoys send what fields of the providers ask for, to servers of Zipkin's API and of OTLP. A
// variable that the proxy does not have costs nothing but its attributes.
func TestG110TracersDoAsTheirProvidersSay(t *testing.T) {
	headers := []*mesh.MeshConfig_ExtensionProvider_HttpHeader{{
		Name: "Key", HeaderValue: &mesh.MeshConfig_ExtensionProvider_HttpHeader_Value{Value: "100%"},
	}}
	all := &api.Tracing{RandomSamplingPercentage: wrapperspb.Double(100)}
	zipkin := sentBy(t, tracing{how: complete(toZipkin(collecting, &mesh.MeshConfig_ExtensionProvider_ZipkinTracingProvider{
		Path: "/own", Timeout: durationpb.New(time.Minute), Headers: headers,
		TraceContextOption: mesh.MeshConfig_ExtensionProvider_ZipkinTracingProvider_USE_B3_WITH_W3C_PROPAGATION,
	}), all, 0)})
	if zipkin.path != "/own" || zipkin.header.Get("Key") != "100%" {
		t.Errorf("the server of Zipkin's API got %s %v", zipkin.path, zipkin.header)
	}
	for _, attributes := range []string{"", "deployment.environment.name=shop-of-cats"} {
		if attributes != "" {
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
		}
		otlp := sentBy(t, tracing{how: complete(toOpenTelemetry(collecting, &mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider{
			Http: &mesh.MeshConfig_ExtensionProvider_HttpService{Path: "/v1/traces", Headers: headers},
			ResourceDetectors: &mesh.MeshConfig_ExtensionProvider_ResourceDetectors{
				Environment: &mesh.MeshConfig_ExtensionProvider_ResourceDetectors_EnvironmentResourceDetector{},
				Dynatrace:   &mesh.MeshConfig_ExtensionProvider_ResourceDetectors_DynatraceResourceDetector{},
			},
		}, "web.shop"), all, 0)})
		if otlp.path != "/v1/traces" || otlp.header.Get("Key") != "100%" || !strings.Contains(otlp.body, "web.shop") ||
			!strings.Contains(otlp.body, "ingress") { // G129: the name of the span
			t.Errorf("with %q, the server of OTLP got %s %v %q", attributes, otlp.path, otlp.header, otlp.body)
		}
		if has := strings.Contains(otlp.body, "shop-of-cats"); has != (attributes != "") {
			t.Errorf("with %q, the spans have the attribute: %t", attributes, has)
		}
	}
}

// TestG111TracersMaySample: where the object says that IDs of requests do not decide, a real Envoy leaves it to the tracer, which takes
// also requests of which the share says that none is traced.
func TestG111TracersMaySample(t *testing.T) {
	none := &api.Tracing{RandomSamplingPercentage: wrapperspb.Double(0), UseRequestIdForTraceSampling: wrapperspb.Bool(false)}
	got := sentBy(t, tracing{complete(toZipkin(collecting, &mesh.MeshConfig_ExtensionProvider_ZipkinTracingProvider{}), none, 0), requestID(none)})
	if !strings.Contains(got.body, "web.shop") {
		t.Errorf("the spans are %s", got.body)
	}
}

func logOf(t *testing.T, format, expression string) logger {
	t.Helper()
	of := &mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider_LogFormat{LogFormat: &mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider_LogFormat_Text{Text: format}}
	log, err := toFile(&mesh.MeshConfig_ExtensionProvider_EnvoyFileAccessLogProvider{LogFormat: of}, expression)
	if err != nil {
		t.Errorf("%s: %v", format, err)
	}
	return log
}

// TestK27WhatEnvoyRefusesDoesNotPass: mistakes, and what proxies do not have.
func TestK27WhatEnvoyRefusesDoesNotPass(t *testing.T) {
	for _, text := range []string{
		"(", "a b", "[1].exists(x, x == 1)", "[1].map(x, x)", "{'a': 1}", "string(1) == '1'", "nope(1)", "a.nope()",
		"bytes('a') == b'a'", "type(1) == int", "A{b: 1}", strings.Repeat("(", 10000), "\x00",
	} {
		if CheckExpression(text) == nil {
			t.Errorf("the expression %.40q passes", text)
		}
	}
	for _, text := range []string{
		"%", "%NO%", "%REQ%", "%REQ()%", "100%", "%START_TIME", "%REQ(a", "%RESPONSE_CODE(1)%", "%REQ(a?b?c)%",
		"%START_TIME:3%", "%START_TIME(%s):3%", "%START_TIME(\n)%", "%FILTER_STATE%", "%FILTER_STATE(a:NO)%", "%FILTER_STATE(a:FIELD)%",
		"%CEL()%", "%CEL((()%", "%CEL(nope(1))%", "%CEL([1].exists(x, x == 1))%", "%METADATA(NO:a)%", "%PATH(NO)%", "%COMMON_DURATION(a:b:h)%",
		"%GRPC_STATUS(NO)%", "%REQUESTED_SERVER_NAME(NO)%", "%CLUSTER_METADATA(a:b):3%", "%REQ(a):9999999999999999999999%",
		"%REQ_WITHOUT_QUERY(:PATH)%", "%DOWNSTREAM_PEER_SUBJECT:3%", "%UPSTREAM_HOST(1)%",
	} {
		if CheckFormat(text) == nil {
			t.Errorf("the format %q passes", text)
		}
	}
}
