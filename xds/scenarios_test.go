package xds

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestScenarios compares what a step sends to proxies on incremental streams, in the
// order in which it is sent.
func TestScenarios(t *testing.T) {
	compared := 0
	federationtest.EachFile(t, func(t *testing.T, s *federationtest.Scenario) {
		if s.Wants("want/sent.txt") {
			compared++
		}
		server := New(Options{Snapshots: s.Aggregate, Fleet: fleet.New(), Logger: slog.New(slog.DiscardHandler)})
		var open []*testStream
		var sent strings.Builder
		for _, proxy := range s.Proxies {
			f := newTestStream(server, nodeOf(t, proxy))
			defer f.close()
			f.heard = func(r *response) { sent.WriteString(linesOf(proxy.Name, r)) }
			open = append(open, f)
		}
		for more := true; more; more = s.Next(t) {
			sent.Reset()
			for _, f := range open {
				f.follow()
			}
			s.Compare(t, "want/sent.txt", []byte(sent.String()))
		}
	})
	if compared == 0 {
		t.Error("no scenario wants what is sent")
	}
}

func nodeOf(t *testing.T, proxy federationtest.Proxy) envoy.Node {
	t.Helper()
	metadata, err := structpb.NewStruct(proxy.Metadata)
	if err != nil {
		t.Fatalf("metadata of %s: %v", proxy.Name, err)
	}
	l := proxy.Locality()
	n, err := envoy.ParseNode(&corev3.Node{
		Id: proxy.ID, Metadata: metadata, Locality: &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone},
	})
	if err != nil {
		t.Fatalf("proxy %s: %v", proxy.Name, err)
	}
	return n
}

var titles = map[envoy.Type]string{
	envoy.ClusterType: "clusters", envoy.EndpointType: "endpoints", envoy.ListenerType: "listeners", envoy.RouteType: "routes",
	envoy.SecretType: "secrets", envoy.NamesType: "names", envoy.ProxyConfigType: "proxy configuration",
}

// linesOf writes a response as lines of what it sends and removes.
func linesOf(proxy string, r *response) string {
	var lines []string
	for _, resource := range r.resources {
		lines = append(lines, fmt.Sprintf("%s: %s: %s\n", proxy, titles[r.kind], resource.name))
	}
	for _, name := range r.removed {
		lines = append(lines, fmt.Sprintf("%s: %s: %s removed\n", proxy, titles[r.kind], name))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
