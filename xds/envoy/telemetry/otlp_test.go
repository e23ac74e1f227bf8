package telemetry

import (
	"encoding/json"
	"testing"
	"time"

	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	mesh "istio.io/api/mesh/v1alpha1"

	"isthmus.dev/isthmus/xds/envoy/extension"
)

// TestG107TracesOverHTTPOrGRPC: traces go over HTTP where the provider says so, and over gRPC else; headers are sent as they
// are written.
func TestG107TracesOverHTTPOrGRPC(t *testing.T) {
	at := extension.Server{Cluster: "outbound|4318||spans.shop", Host: "spans.shop", Port: 4318}
	headers := []*mesh.MeshConfig_ExtensionProvider_HttpHeader{{
		Name: "Key", HeaderValue: &mesh.MeshConfig_ExtensionProvider_HttpHeader_Value{Value: "100%"},
	}}
	config := func(p *mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider) *tracev3.OpenTelemetryConfig {
		t.Helper()
		m, err := toOpenTelemetry(at, p, "web.shop").GetProvider().GetTypedConfig().UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		return m.(*tracev3.OpenTelemetryConfig)
	}
	http := config(&mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider{
		Http: &mesh.MeshConfig_ExtensionProvider_HttpService{Path: "/v1/traces", Headers: headers},
	})
	to := http.GetHttpService()
	if http.GetGrpcService() != nil || to.GetHttpUri().GetUri() != "http://spans.shop/v1/traces" || to.GetHttpUri().GetCluster() != at.Cluster ||
		to.GetHttpUri().GetTimeout().AsDuration() != 3*time.Second {
		t.Errorf("over HTTP: %v", http)
	}
	if got := to.GetRequestHeadersToAdd(); len(got) != 1 || got[0].GetHeader().GetKey() != "key" || got[0].GetHeader().GetValue() != "100%%" {
		t.Errorf("the headers are %v", got)
	}
	grpc := config(&mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider{
		Grpc: &mesh.MeshConfig_ExtensionProvider_GrpcService{Timeout: durationpb.New(time.Second), InitialMetadata: headers},
	})
	if s := grpc.GetGrpcService(); grpc.GetHttpService() != nil || s.GetEnvoyGrpc().GetClusterName() != at.Cluster ||
		s.GetTimeout().AsDuration() != time.Second || len(s.GetInitialMetadata()) != 1 || grpc.GetServiceName() != "web.shop" {
		t.Errorf("over gRPC: %v", grpc)
	}
}

// TestG108WhatEnvoyRefusesIsNotSent: a provider with headers, a path or a time limit that Envoy refuses is not used. Envoy would refuse
// each listener of a proxy with it. The error has no value of a header.
func TestG108WhatEnvoyRefusesIsNotSent(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"http":{"path":"/v1/traces","timeout":"3s","headers":[{"name":"Key","value":"a, b %"}]}}`, ``},
		{`{"grpc":{"timeout":"0.5s","initialMetadata":[{"name":"key","value":"é"}]}}`, ``},
		{`{"http":{"path":"v1/traces"}}`, `http.path "v1/traces" is not a path that begins with /`},
		{`{"http":{"path":"/"},"grpc":{}}`, `it has both http and grpc: write one of them`},
		{`{"http":{"path":""}}`, `http.path "" is not a path that begins with /`},
		{`{"http":{"path":"/a b"}}`, `http.path "/a b" is not a path that begins with /`},
		{`{"http":{"path":"/","timeout":"0s"}}`, `http.timeout is not between 1ms and 1h0m0s`},
		{`{"http":{"path":"/","timeout":"4294967296s"}}`, `http.timeout is not between 1ms and 1h0m0s`},
		{`{"grpc":{"timeout":"-1s"}}`, `grpc.timeout is not between 1ms and 1h0m0s`},
		{
			`{"http":{"path":"/","headers":[{"name":":path","value":"secret"}]}}`,
			`http.headers[0].name ":path" is not the name of a header that may be set`,
		},
		{
			`{"http":{"path":"/","headers":[{"name":"Host","value":"secret"}]}}`,
			`http.headers[0].name "Host" is not the name of a header that may be set`,
		},
		{
			`{"http":{"path":"/","headers":[{"value":"secret"}]}}`,
			`http.headers[0].name "" is not the name of a header that may be set`,
		},
		{
			`{"http":{"path":"/","headers":[{"name":"a\nb","value":"secret"}]}}`,
			`http.headers[0].name "a\nb" is not the name of a header that may be set`,
		},
		{
			`{"http":{"path":"/","headers":[{"name":"a","value":"secret\r\nb: c"}]}}`,
			`http.headers[0].value has a line break or another control character`,
		},
		{
			`{"grpc":{"initialMetadata":[{"name":"a"},{"name":"b","value":"secret\u0000"}]}}`,
			`grpc.initialMetadata[1].value has a line break or another control character`,
		},
		{
			`{"grpc":{"initialMetadata":[{"name":"a","envName":"SECRET"}]}}`,
			`grpc.initialMetadata[0].envName is not supported: write value`,
		},
	} {
		p := &mesh.MeshConfig_ExtensionProvider_OpenTelemetryTracingProvider{}
		if err := json.Unmarshal([]byte(c.config), p); err != nil {
			t.Fatalf("%s: %v", c.config, err)
		}
		got := ""
		if err := checkSpans(p); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.config, got, c.want)
		}
	}
}
