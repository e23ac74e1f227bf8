package telemetry

import (
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
