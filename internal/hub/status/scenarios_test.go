package status

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
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
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/xdstest"
)

// TestScenarios compares the status of configuration objects while the proxies of the
// scenario are connected and accept everything.
func TestScenarios(t *testing.T) {
	compared := 0
	for _, file := range federationtest.Files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if s := federationtest.Load(t, file); s.Wants("want/status.txt") {
					compared++
					compareStatus(t, s)
				}
			})
		})
	}
	if compared == 0 {
		t.Error("no scenario wants a status")
	}
}

func compareStatus(t *testing.T, s *federationtest.Scenario) {
	proxies := fleet.New()
	server := xds.New(xds.Options{Snapshots: s.Aggregate, Fleet: proxies, Logger: slog.New(slog.DiscardHandler)})
	g := grpc.NewServer(server.ServerOptions()...)
	server.Register(g)
	listener := testbed.NewMemoryListener()
	go func() { _ = g.Serve(listener) }()
	defer g.Stop()
	conn, err := grpc.NewClient("passthrough:///hub", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) { return listener.Dial(ctx, "tcp", at) }))
	must(t, err)
	defer conn.Close()
	for _, proxy := range s.Proxies {
		connect(t, conn, proxy)
	}
	objects := &Objects{Hub: "hub", Proxies: server}
	for more := true; more; more = s.Next(t) {
		<-time.NewTimer(time.Minute).C // in fake time, in which the proxies get what there is
		var b strings.Builder
		for o := range s.Config.Objects() {
			for _, f := range objects.Findings(s.Snapshot(), proxies.Latest(), o.Key) {
				at := ""
				if f.Field != "" {
					at = f.Field + ": "
				}
				fmt.Fprintf(&b, "%s: %s %s%s\n", o.Key.Title(), f.Code, at, f.Message)
			}
			if decoded, ok := s.Snapshot().Object(o.Key); ok {
				for _, f := range objects.NotHonoured(s.Snapshot(), decoded) {
					fmt.Fprintf(&b, "%s: NOT_SUPPORTED %s: %s\n", o.Key.Title(), f.Field, f.Reason)
				}
			}
		}
		s.Compare(t, "want/status.txt", []byte(b.String()))
	}
}

// connect opens a stream of the proxy that asks for the routes of its listeners, too.
func connect(t *testing.T, conn *grpc.ClientConn, proxy federationtest.Proxy) {
	metadata, err := structpb.NewStruct(proxy.Metadata)
	must(t, err)
	l := proxy.Locality()
	var extensions []*corev3.Extension
	for _, name := range proxy.Extensions {
		extensions = append(extensions, &corev3.Extension{Name: name})
	}
	client, err := xdstest.Open(t.Context(), conn, xdstest.Options{Delta: true, Node: &corev3.Node{
		Id: proxy.ID, Metadata: metadata, Locality: &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone},
		Extensions: extensions,
	}})
	must(t, err)
	must(t, client.Send(xdstest.Request{Type: xdstest.CDS}))
	must(t, client.Send(xdstest.Request{Type: xdstest.LDS}))
	go func() {
		for {
			r, err := client.Receive(t.Context())
			if err != nil {
				return // the test is over
			}
			_ = client.Ack(r)
			if routes := routesOf(r); len(routes) > 0 {
				_ = client.Send(xdstest.Request{Type: xdstest.RDS, Names: routes})
			}
		}
	}()
}

// routesOf are the names of the route configurations that the listeners refer to.
func routesOf(r xdstest.Response) (names []string) {
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
