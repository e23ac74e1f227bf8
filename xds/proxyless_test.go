package xds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	grpcxds "google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// proxyless is a hub on a unix socket for gRPC's own xDS clients. At its end no
// resource may have been refused.
type proxyless struct {
	t      *testing.T
	writer *federation.Writer
	fleet  *fleet.Fleet
	server string
	creds  string // channel credentials of the bootstrap

	mu      sync.Mutex
	events  map[Event]int
	checked sync.Once
}

// Count notes what happens.
func (p *proxyless) Count(e Event, _ envoy.Type) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events[e]++
}

// Answered is of no interest.
func (p *proxyless) Answered(envoy.Type, time.Duration) {}

func newProxyless(t *testing.T, options ...grpc.ServerOption) *proxyless {
	t.Helper()
	dir, err := os.MkdirTemp("", "xds")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "hub")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return serveProxyless(t, l, "unix://"+socket, options...)
}

func serveProxyless(t *testing.T, l net.Listener, uri string, options ...grpc.ServerOption) *proxyless {
	t.Helper()
	a := federation.NewAggregate(nil)
	p := &proxyless{t: t, writer: a.Open(source1), fleet: fleet.New(), server: uri, creds: `{"type": "insecure"}`, events: map[Event]int{}}
	p.writer.Update(federation.Edit{Settings: &federation.Settings{Addresses: federation.AddressPolicy{AllowLoopback: true}}})
	server := New(Options{Snapshots: a, Fleet: p.fleet, Metrics: p, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	g := grpc.NewServer(append(server.ServerOptions(), options...)...)
	server.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-served })
	return p
}

// check wants everything accepted. It comes before the first channel is closed: what
// a client has not read when it closes it refuses.
func (p *proxyless) check() {
	testbed.WaitFor(p.t, patience, "every response is answered", p.answered)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events[Nacked] != 0 || p.events[BuildFailed] != 0 || p.events[TooMuch]+p.events[Malformed] != 0 {
		p.t.Errorf("gRPC refused something: %v", p.events)
	}
}

func (p *proxyless) set(services ...serviceDelta) {
	for _, s := range services {
		p.writer.Update(federation.Edit{Services: s})
	}
}

// dial makes a channel to the target, with the bootstrap that a workload of the
// namespace shop would have.
func (p *proxyless) dial(target string, options ...grpc.DialOption) *grpc.ClientConn {
	p.t.Helper()
	node, err := json.Marshal(map[string]any{
		"id":       "sidecar~10.1.0.9~client.shop~shop.svc.cluster.local",
		"metadata": map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "shop", "LABELS": map[string]any{"app": "client"}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	bootstrap := fmt.Sprintf(`{"xds_servers": [{"server_uri": %q, "channel_creds": [%s], "server_features": ["xds_v3"]}], "node": %s}`,
		p.server, p.creds, node)
	resolver, err := grpcxds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	if err != nil {
		p.t.Fatal(err)
	}
	options = append([]grpc.DialOption{grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)
	conn, err := grpc.NewClient("xds:///"+target, options...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		p.checked.Do(p.check)
		conn.Close()
	})
	return conn
}

func (p *proxyless) answered() error {
	for proxy := range p.fleet.Latest().Proxies() {
		for typ, s := range proxy.Sync {
			if s.State == fleet.Pending {
				return fmt.Errorf("%s is on its way", typ)
			}
		}
	}
	return nil
}

// backend is a gRPC server that knows every method, and fails as often as it is
// told to.
type backend struct {
	address  netip.AddrPort
	mu       sync.Mutex
	failures int
	calls    int
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{address: l.Addr().(*net.TCPAddr).AddrPort()}
	g := grpc.NewServer(grpc.UnknownServiceHandler(b.answer))
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-served })
	return b
}

func newBackends(t *testing.T, n int) []*backend {
	all := make([]*backend, n)
	for i := range all {
		all[i] = newBackend(t)
	}
	return all
}

func (b *backend) answer(_ any, s grpc.ServerStream) error {
	if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	if method, _ := grpc.MethodFromServerStream(s); method == "/shop.Slow/Get" {
		<-s.Context().Done() // no answer ever
		return s.Context().Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.failures > 0 {
		b.failures--
		return status.Error(codes.ResourceExhausted, "not now")
	}
	return s.SendMsg(&emptypb.Empty{})
}

func (b *backend) fail(times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.calls = times, 0
}

func (b *backend) called() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// backedBy is a service of that name with the backends as endpoints; weights, if
// there are any, in their order.
func backedBy(name string, backends []*backend, weights ...uint32) serviceDelta {
	shard := httpShard()
	shard.Ports[0].Protocol = federation.GRPC
	for i, b := range backends {
		e := federation.Endpoint{
			Address: federation.IPAddress(b.address.Addr()), Ports: []federation.EndpointPort{{Name: "http", Number: b.address.Port()}},
			Locality: federation.Locality{Region: "r1"}, Labels: map[string]string{"version": fmt.Sprintf("v%d", i+1)},
		}
		if len(weights) > 0 {
			e.Weight = weights[i]
		}
		shard.Endpoints = append(shard.Endpoints, e)
	}
	return serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{key(name): shard}}
}

// call calls once and returns who answered. It waits for no backend.
func call(conn *grpc.ClientConn, method string, headers ...string) (netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var from peer.Peer
	ctx = metadata.AppendToOutgoingContext(ctx, headers...)
	if err := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.Peer(&from)); err != nil {
		return netip.AddrPort{}, err
	}
	return from.Addr.(*net.TCPAddr).AddrPort(), nil
}

// answers counts who answers so many calls.
func answers(conn *grpc.ClientConn, n int) (map[netip.AddrPort]int, error) {
	counts := map[netip.AddrPort]int{}
	for range n {
		from, err := call(conn, "/shop.Web/Get")
		if err != nil {
			return nil, fmt.Errorf("calling %s: %w", conn.Target(), err)
		}
		counts[from]++
	}
	return counts, nil
}

// awaitAnswers calls until calls in a row are answered by exactly those. While
// gRPC takes over another cluster it may fail a call itself.
func awaitAnswers(t *testing.T, conn *grpc.ClientConn, want ...*backend) {
	t.Helper()
	testbed.WaitFor(t, patience, "calls reach the backends", func() error {
		got, err := answers(conn, 4*len(want))
		if err != nil {
			return err
		}
		for _, b := range want {
			if got[b.address] == 0 {
				return fmt.Errorf("answered by %v, not by %s", got, b.address)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("answered by %v, want %d backends", got, len(want))
		}
		return nil
	})
}
