package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// configServer serves one ServiceEntry.
type configServer struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
}

// StreamAggregatedResources answers each first request of a type.
func (configServer) StreamAggregatedResources(g discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	for {
		r, err := g.Recv()
		if err != nil {
			return err
		}
		if r.GetResponseNonce() != "" {
			continue
		}
		answer := &discoveryv3.DiscoveryResponse{TypeUrl: r.GetTypeUrl(), VersionInfo: "1", Nonce: "1"}
		if r.GetTypeUrl() == "networking.istio.io/v1/ServiceEntry" {
			answer.Resources = []*anypb.Any{packed(&mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: "shop/far"}, Body: packed(&networking.ServiceEntry{
				Hosts: []string{"far.example.com"}, Resolution: networking.ServiceEntry_STATIC,
				Ports:     []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
				Endpoints: []*networking.WorkloadEntry{{Address: "192.0.2.7"}},
			})})}
		}
		if err := g.Send(answer); err != nil {
			return err
		}
	}
}

func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err) // a message of this test
	}
	return a
}

// fileOf writes a config file.
func fileOf(t *testing.T, format string, args ...any) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "isthmus.yaml")
	if err := os.WriteFile(path, []byte(fmt.Sprintf(format, args...)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestM06ServiceEntriesOfAServerAreServices: a server of the config file is a source, its
// ServiceEntries are services, and it stays so without the server.
func TestM06ServiceEntriesOfAServerAreServices(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, configServer{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	h := startHub(t, "--config", fileOf(t, "mcp: {servers: [{name: far, address: %q}]}\n", listener.Addr()))
	served := func() error {
		var answer struct {
			Service *struct{ Hostname string }
			Object  *struct{ SourceName, Source string }
		}
		err := h.query(`{service(hostname: "far.example.com", namespace: "shop") {hostname}
			object: configObject(group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: "far") {sourceName source}}`, &answer)
		if err == nil && (answer.Service == nil || answer.Object == nil || answer.Object.SourceName != "MCP far" || answer.Object.Source != "MCP") {
			err = fmt.Errorf("there is %+v", answer)
		}
		return err
	}
	h.await(t, "the service", served)
	h.awaitSource(t, "MCP far", func(s shownSource) bool { return s.Kind == "MCP" && len(s.Trouble) == 0 })
	server.Stop()
	h.awaitSource(t, "MCP far", func(s shownSource) bool { return len(s.Trouble) == 1 && s.Trouble[0].Code == "UNREACHABLE" })
	h.awaitMetrics(t, `isthmus_config_source_problems{source="MCP far"} 1`)
	if err := served(); err != nil {
		t.Error(err)
	}
}
