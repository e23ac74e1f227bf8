package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	grpcxds "google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy"
)

// unchanging is the only snapshot that there is.
type unchanging struct{ snapshot *federation.Snapshot }

func (u unchanging) Latest() *federation.Snapshot { return u.snapshot }

// refusals counts what clients refuse.
type refusals struct{ count atomic.Int32 }

func (r *refusals) Count(e xds.Event, _ envoy.Type) {
	if e == xds.Nacked || e == xds.BuildFailed {
		r.count.Add(1)
	}
}

func (r *refusals) Answered(envoy.Type, time.Duration) {}

// gRPC's own client takes what is built from arbitrary snapshots, and finds all
// that it needs: calls to any name end at once, since no backend can be reached.
func TestGRPCTakesAnySnapshot(t *testing.T) {
	t.Parallel()
	for seed := range 8 {
		s, n := rapid.Custom(drawSnapshot).Example(seed), grpcClient(t)
		proxies := fleet.New()
		bootstrap, refused := serveSnapshot(t, s, n, proxies)
		for _, name := range withoutNames(t, buildAll(t, n, s)) {
			if err := callNobody(t, bootstrap, name); status.Code(err) == grpccodes.DeadlineExceeded || err == nil {
				t.Errorf("seed %d: a call to %s ends with %v; want that it fails at once", seed, name, err)
			}
		}
		awaitAnswered(t, proxies)
		if n := refused.count.Load(); n != 0 { // channels are open still: what a client has not read when it closes it refuses
			t.Errorf("seed %d: gRPC refused %d responses", seed, n)
		}
	}
}

// withoutNames are the targets behind which no DNS name would be looked up.
func withoutNames(t *testing.T, built map[envoy.Type][]builtResource) []string {
	var targets []string
	for _, l := range built[envoy.ListenerType] {
		_, routes := listenerRefersTo(t, l.message.(*listenerv3.Listener))
		config, _ := find[*routev3.RouteConfiguration](t, built[envoy.RouteType], routes[0])
		if !slices.ContainsFunc(routedTo(config), func(name string) bool {
			c, _ := find[*clusterv3.Cluster](t, built[envoy.ClusterType], name)
			return c.GetType() == clusterv3.Cluster_LOGICAL_DNS
		}) {
			targets = append(targets, l.name)
		}
	}
	return targets
}

// serveSnapshot returns the bootstrap with which gRPC clients come as the node.
func serveSnapshot(t *testing.T, s *federation.Snapshot, n envoy.Node, proxies *fleet.Fleet) ([]byte, *refusals) {
	t.Helper()
	dir, err := os.MkdirTemp("", "grpc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "hub"))
	if err != nil {
		t.Fatal(err)
	}
	refused := &refusals{}
	server := xds.New(xds.Options{
		Snapshots: unchanging{s}, Fleet: proxies, Metrics: refused,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	g := grpc.NewServer(server.ServerOptions()...)
	server.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-served })
	return fmt.Appendf(nil,
		`{"xds_servers": [{"server_uri": "unix://%s", "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
		"node": {"id": %q, "metadata": {"CLUSTER_ID": "c1", "NAMESPACE": "shop"}}}`, l.Addr(), n.ID), refused
}

var errNobody = errors.New("nobody is there")

// callNobody calls over a channel that reaches no backend.
func callNobody(t *testing.T, bootstrap []byte, target string) error {
	t.Helper()
	resolver, err := grpcxds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errNobody }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return conn.Invoke(ctx, "/shop.Web/Get", &emptypb.Empty{}, &emptypb.Empty{})
}

func awaitAnswered(t *testing.T, proxies *fleet.Fleet) {
	t.Helper()
	testbed.WaitFor(t, time.Minute, "every response is answered", func() error {
		for proxy := range proxies.Latest().Proxies() {
			for typ, s := range proxy.Sync {
				if s.State == fleet.Pending {
					return fmt.Errorf("%s is on its way", typ)
				}
			}
		}
		return nil
	})
}
