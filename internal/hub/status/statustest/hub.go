// Package statustest connects the proxies of a scenario to a hub, for rooms that report
// how configuration is delivered.
package statustest

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/internal/hub/status"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/xdstest"
)

// Hub serves the proxies of a scenario.
type Hub struct {
	Server  *xds.Server
	Fleet   *fleet.Fleet
	Objects *status.Objects
	conn    *grpc.ClientConn
}

// Each runs look as a subtest for every scenario with the section, at its beginning, in a bubble of
// testing/synctest. The proxies of the scenario are connected and accept everything that they get.
func Each(t *testing.T, section string, look func(t *testing.T, s *federationtest.Scenario, h Hub)) {
	t.Helper()
	looked := 0
	for _, file := range federationtest.Files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if s := federationtest.Load(t, file); s.Wants(section) {
					looked++
					look(t, s, serve(t, s))
				}
			})
		})
	}
	if looked == 0 {
		t.Errorf("no scenario has the section %s", section)
	}
}

func serve(t *testing.T, s *federationtest.Scenario) Hub {
	t.Helper()
	h := Serve(t, s.Aggregate)
	for _, proxy := range s.Proxies {
		h.follow(t, proxy)
	}
	return h
}

// Serve serves proxies of the snapshots until the test ends. The test runs in a bubble of testing/synctest.
func Serve(t *testing.T, snapshots *federation.Aggregate) Hub {
	t.Helper()
	h := Hub{Fleet: fleet.New()}
	h.Server = xds.New(xds.Options{Snapshots: snapshots, Fleet: h.Fleet, Logger: slog.New(slog.DiscardHandler)})
	h.Objects = &status.Objects{Hub: "hub", Proxies: h.Server}
	g := grpc.NewServer(h.Server.ServerOptions()...)
	h.Server.Register(g)
	listener := testbed.NewMemoryListener()
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("passthrough:///hub", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) { return listener.Dial(ctx, "tcp", at) }))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	h.conn = conn
	return h
}

// Connect opens a stream of the proxy, and asks for its clusters and listeners.
func (h Hub) Connect(t *testing.T, node *corev3.Node) *xdstest.Client {
	t.Helper()
	client, err := xdstest.Open(t.Context(), h.conn, xdstest.Options{Delta: true, Node: node})
	must(t, err)
	must(t, client.Send(xdstest.Request{Type: xdstest.CDS}))
	must(t, client.Send(xdstest.Request{Type: xdstest.LDS}))
	return client
}

// Settle gives the proxies the time, which is fake, to get what there is.
func Settle() { <-time.NewTimer(time.Minute).C }

// follow connects the proxy, and has it ask for the routes of its listeners, too.
func (h Hub) follow(t *testing.T, proxy federationtest.Proxy) {
	metadata, err := structpb.NewStruct(proxy.Metadata)
	must(t, err)
	l := proxy.Locality()
	var extensions []*corev3.Extension
	for _, name := range proxy.Extensions {
		extensions = append(extensions, &corev3.Extension{Name: name})
	}
	client := h.Connect(t, &corev3.Node{
		Id: proxy.ID, Metadata: metadata, Locality: &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone},
		Extensions: extensions,
	})
	go func() {
		for {
			r, err := client.Receive(t.Context())
			if err != nil {
				return // the test is over
			}
			_ = client.Ack(r)
			if routes := RoutesOf(r); len(routes) > 0 {
				_ = client.Send(xdstest.Request{Type: xdstest.RDS, Names: routes})
			}
		}
	}()
}

// RoutesOf are the names of the route configurations that the listeners refer to.
func RoutesOf(r xdstest.Response) (names []string) {
	for _, listener := range r.Resources {
		_ = protorange.Range(listener.ProtoReflect(), func(at protopath.Values) error {
			if m, ok := at.Index(-1).Value.Interface().(protoreflect.Message); ok {
				if rds, ok := m.Interface().(*hcmv3.Rds); ok {
					names = append(names, rds.GetRouteConfigName())
				}
			}
			return nil
		})
	}
	return names
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
