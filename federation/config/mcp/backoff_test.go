package mcp_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/federation/config/schema"
)

// attempt is one connection of the hub, and what the server does to it.
type attempt struct {
	name    string
	refused bool          // the connection is
	answers bool          // the server does, before the stream ends
	lasts   time.Duration // of the stream
	pause   time.Duration // that follows, up to a quarter more or less
}

// unsteady is a server that does as the attempts say, one after the other.
type unsteady struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	t        *testing.T
	listener *testbed.MemoryListener
	began    chan time.Time // each attempt
	told     chan attempt   // what it is like
	current  atomic.Pointer[attempt]
	answer   *discoveryv3.DiscoveryResponse
}

// dial begins an attempt.
func (s *unsteady) dial(ctx context.Context, _ string) (net.Conn, error) {
	select {
	case s.began <- time.Now():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-s.told:
		s.current.Store(&a)
		if a.refused {
			return nil, errors.New("connection refused")
		}
		return s.listener.Dial(ctx, "", "")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *unsteady) StreamAggregatedResources(g discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	if _, err := g.Recv(); err != nil {
		return err
	}
	a := s.current.Load()
	if a.answers {
		if err := g.Send(s.answer); err != nil {
			return err
		}
	}
	end := time.NewTimer(a.lasts)
	defer end.Stop()
	select {
	case <-end.C:
		return status.Error(codes.Unavailable, "not now")
	case <-g.Context().Done():
		return nil
	}
}

// unsteadyServer runs such a server, and a hub that reads it. They run in a bubble of synctest.
func unsteadyServer(t *testing.T, known *schema.Set, options ...grpc.ServerOption) (*unsteady, *hub) {
	t.Helper()
	s := &unsteady{
		t: t, listener: testbed.NewMemoryListener(), began: make(chan time.Time), told: make(chan attempt),
		answer: &discoveryv3.DiscoveryResponse{TypeUrl: entries, VersionInfo: "1", Nonce: "1", Resources: []*anypb.Any{entry(t, "a", "1")}},
	}
	g := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	go func() { _ = g.Serve(s.listener) }()
	t.Cleanup(g.Stop)
	h := &hub{t: t, changed: make(chan struct{}), source: mcp.New(mcp.Options{
		Server: mcp.Server{Name: "test", Address: "127.0.0.1:1", Kinds: []string{"ServiceEntry.networking.istio.io"}},
		Known:  known.Kinds(), Schema: kind.Schema{Set: known}, Dial: s.dial,
	})}
	h.run()
	return s, h
}

// TestR115AServerThatFailsIsAskedLessAndLessOften: whether it refuses connections, refuses streams or ends them. The pauses double
// from 1 s to 30 s, and begin again after a stream of more than 30 s.
func TestR115AServerThatFailsIsAskedLessAndLessOften(t *testing.T) {
	known := set(t)
	synctest.Test(t, func(t *testing.T) {
		s, h := unsteadyServer(t, known, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second}))
		s.check([]attempt{
			{name: "a refused connection", refused: true, pause: time.Second},
			{name: "a second one", refused: true, pause: 2 * time.Second},
			{name: "a refused stream", pause: 4 * time.Second},
			{name: "a stream that ends after its answer", answers: true, pause: 8 * time.Second},
			{name: "a stream without an answer", lasts: 3 * time.Second, pause: 16 * time.Second},
			{name: "a stream that ends after some time", answers: true, lasts: 20 * time.Second, pause: 30 * time.Second},
			{name: "a refused stream at the limit", pause: 30 * time.Second},
			{name: "a refused connection at the limit", refused: true, pause: 30 * time.Second},
			{name: "a stream that lasts", answers: true, lasts: 31 * time.Second, pause: time.Second},
			{name: "a refused stream after that", pause: 2 * time.Second},
			{name: "a quiet stream that lasts", lasts: time.Hour, pause: time.Second},
			{name: "a refused connection after that", refused: true, pause: 2 * time.Second},
		})
		h.await("the trouble", func() bool { return h.said("UNREACHABLE") && h.has("a") })
	})
}

// TestR116AServerThatPermitsFewPingsKeepsItsStream: gRPC's servers permit one ping in 5 minutes if nothing else is set, and end
// connections with more of them. It happens once and is not reported as a problem.
func TestR116AServerThatPermitsFewPingsKeepsItsStream(t *testing.T) {
	known := set(t)
	synctest.Test(t, func(t *testing.T) {
		s, h := unsteadyServer(t, known)
		<-s.began
		s.told <- attempt{answers: true, lasts: 24 * time.Hour}
		first := <-s.began
		h.mu.Lock()
		if !h.said() || !h.has("a") {
			t.Errorf("the trouble is %+v", h.trouble)
		}
		h.mu.Unlock()
		s.told <- attempt{answers: true, lasts: 24 * time.Hour}
		if second := <-s.began; second.Sub(first) < 24*time.Hour {
			t.Errorf("a quiet stream ends after %v", second.Sub(first))
		}
	})
}

// check has the hub make the attempts, and measures the pauses.
func (s *unsteady) check(all []attempt) {
	s.t.Helper()
	began := <-s.began
	for _, a := range all {
		s.told <- a
		next := <-s.began
		pause := next.Sub(began) - a.lasts
		if pause < a.pause*3/4 || pause > a.pause*5/4 {
			s.t.Errorf("after %s the hub waits %v, want about %v", a.name, pause, a.pause)
		}
		began = next
	}
}
