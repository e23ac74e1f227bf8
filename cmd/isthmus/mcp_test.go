package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
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
			answer.Resources = []*anypb.Any{packed(&mcpapi.Resource{
				Metadata: &mcpapi.Metadata{Name: "shop/far"},
				Body: packed(&networking.ServiceEntry{
					Hosts: []string{"far.example.com"}, Resolution: networking.ServiceEntry_STATIC,
					Ports:     []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
					Endpoints: []*networking.WorkloadEntry{{Address: "192.0.2.7"}},
				}),
			})}
		}
		if err := g.Send(answer); err != nil {
			return err
		}
	}
}

// serveADS runs a server of configuration until the end of the test, or until it is stopped.
func serveADS(t *testing.T, ads discoveryv3.AggregatedDiscoveryServiceServer) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, ads)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), server.Stop
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
	address, stop := serveADS(t, configServer{})
	h := startHub(t, "--config", fileOf(t, "mcp: {servers: [{name: far, address: %q}]}\n", address))
	served := func() error {
		var answer struct {
			Service *struct{ Hostname string }
			Object  *struct{ SourceName, Source string }
		}
		err := h.query(`{service(hostname: "far.example.com", namespace: "shop") {hostname}
			object: configObject(group: "networking.istio.io", kind: "ServiceEntry", namespace: "shop", name: "far") {sourceName source}}`, &answer)
		if err == nil && (answer.Service == nil || answer.Object == nil || answer.Object.SourceName != "MCP far" ||
			answer.Object.Source != "MCP") {
			err = fmt.Errorf("there is %+v", answer)
		}
		return err
	}
	h.await(t, "the service", served)
	h.awaitSource(t, "MCP far", func(s shownSource) bool { return s.Kind == "MCP" && len(s.Problems) == 0 })
	stop()
	h.awaitSource(t, "MCP far", func(s shownSource) bool { return len(s.Problems) == 1 && s.Problems[0].Code == "UNREACHABLE" })
	h.awaitMetrics(t, `isthmus_config_source_problems{source="MCP far"} 1`)
	if err := served(); err != nil {
		t.Error(err)
	}
}

// read returns the ServiceEntries that the hub has of the source, by name.
func (h *hubUnderTest) read(source string) (map[string]bool, error) {
	var answer struct {
		ConfigObjects struct {
			Nodes []struct{ Name, SourceName, Yaml string }
		}
	}
	err := h.query(`{configObjects(first: 100, filter: {kind: "ServiceEntry"}) {nodes {name sourceName yaml}}}`, &answer)
	found := map[string]bool{}
	for _, o := range answer.ConfigObjects.Nodes {
		if o.SourceName == source {
			found[o.Name] = true
		}
	}
	return found, err
}

// TestM09TwoHubsFeedEachOtherWithoutEchoes: each has the other's objects and services, and
// nothing of its own comes back. What one read stays with it when it starts while the other is
// away (M12).
func TestM09TwoHubsFeedEachOtherWithoutEchoes(t *testing.T) {
	t.Parallel()
	one, two := shortDir(t), shortDir(t)
	first := startHubIn(t, one, "--config", fileOf(t, "mcp: {clients: [\"*\"], servers: [{name: peer, address: %q}]}\n", "unix:"+two+"/xds"))
	settings := fileOf(t, "mcp: {clients: [\"*\"], servers: [{name: peer, address: %q, delta: true}]}\n", "unix:"+one+"/xds")
	second := startHubIn(t, two, "--config", settings)
	has := func(h *hubUnderTest, name string) {
		t.Helper()
		h.await(t, "the object "+name, func() error {
			found, err := h.read("MCP peer")
			if err == nil && !found[name] {
				err = fmt.Errorf("there are %v", found)
			}
			return err
		})
	}
	for round := range 2 { // what is made in answer to the first round would come with the second
		a, b := fmt.Sprintf("a%d", round), fmt.Sprintf("b%d", round)
		if wrong := first.applied(t, fmt.Sprintf(entryManifest, a, 1)); wrong != "" {
			t.Fatal(wrong)
		}
		has(second, a)
		if wrong := second.applied(t, fmt.Sprintf(entryManifest, b, 2)); wrong != "" {
			t.Fatal(wrong)
		}
		has(first, b)
	}
	for of, h := range map[string]*hubUnderTest{"b": first, "a": second} {
		found, err := h.read("MCP peer")
		if err != nil {
			t.Fatal(err)
		}
		services := 0
		for name := range found {
			switch {
			case name == of+"0" || name == of+"1":
			case len(name) > 8 && name[:8] == "isthmus-":
				services++
			default:
				t.Errorf("the hub with those of %s has %s", of, name)
			}
		}
		if services != 2 { // those of the sample
			t.Errorf("%d services of the other hub came: %v", services, found)
		}
		if s, err := h.source("MCP peer"); err != nil || len(s.Problems) > 0 {
			t.Errorf("the source is %+v, %v", s, err)
		}
	}
	first.stop()
	second.stop()
	again := startHubIn(t, two, "--config", settings)
	has(again, "a0")
	has(again, "a1")
	again.awaitSource(t, "MCP peer", func(s shownSource) bool {
		return len(s.Problems) == 1 && s.Problems[0].Code == "UNREACHABLE" && strings.Contains(s.Problems[0].Message,
			"what the last run of the hub read until")
	})
}

// TestM08ConfigurationIsForThoseWhoAreNamed: a proxy gets none of it.
func TestM08ConfigurationIsForThoseWhoAreNamed(t *testing.T) {
	dir := shortDir(t)
	startHubIn(t, dir)
	reads := startHub(t, "--config", fileOf(t, "mcp: {servers: [{name: peer, address: %q}]}\n", "unix:"+dir+"/xds"))
	reads.awaitSource(t, "MCP peer", func(s shownSource) bool {
		return len(s.Problems) == 1 && s.Problems[0].Code == "UNREACHABLE" && strings.Contains(s.Problems[0].Message, "mcp.clients")
	})
	if found, err := reads.read("MCP peer"); err == nil || !strings.Contains(err.Error(), "waiting for the configuration of MCP peer") {
		t.Errorf("it has %v, %v", found, err)
	}
}
