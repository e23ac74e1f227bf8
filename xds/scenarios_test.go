package xds

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// TestScenarios compares what a step sends to proxies on incremental streams, in the
// order in which it is sent, and the status of configuration objects.
func TestScenarios(t *testing.T) {
	federationtest.EachFile(t, func(t *testing.T, s *federationtest.Scenario) {
		server := New(Options{Snapshots: s.Aggregate, Fleet: fleet.New(), Logger: slog.New(slog.DiscardHandler)})
		var open []*follower
		var sent strings.Builder
		for _, proxy := range s.Proxies {
			f := newFollower(server, nodeOf(t, proxy))
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
			s.Compare(t, "want/status.txt", []byte(statuses(server, s)))
		}
	})
}

// statuses has the findings of all configuration objects.
func statuses(server *Server, s *federationtest.Scenario) string {
	var b strings.Builder
	for o := range s.Config.Objects() {
		title := o.Key.Title()
		for p := range s.Snapshot().Problems("hub") {
			if p.Object == title {
				fmt.Fprintf(&b, "%s: %s %s: %s\n", title, p.Code, p.Field, p.Message)
			}
		}
		for _, f := range apply.References(s.Snapshot(), o.Key) {
			fmt.Fprintf(&b, "%s: %s %s: %s\n", title, f.Code, f.Field, f.Message)
		}
		if decoded, ok := s.Snapshot().Object(o.Key); ok {
			for _, f := range envoy.NotHonoured(decoded) {
				fmt.Fprintf(&b, "%s: NOT_SUPPORTED %s: %s\n", title, f.Path, f.Reason)
			}
		}
		for _, r := range server.Reasons(o.Key) {
			fmt.Fprintf(&b, "%s: %s %s\n", title, r.Code, r.Message)
		}
	}
	return b.String()
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
	envoy.ClusterType: "clusters", envoy.EndpointType: "endpoints", envoy.ListenerType: "listeners", envoy.RouteType: "routes", envoy.SecretType: "secrets",
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
