package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

// stallingConn passes on so many bytes after it was armed, and then nothing.
type stallingConn struct {
	net.Conn
	stalled chan struct{} // closed when nothing passes any more, or the hub has closed the connection

	mu    sync.Mutex
	armed bool
	left  int
	once  sync.Once
}

func (s *stallingConn) arm(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.left = true, bytes
}

func (s *stallingConn) Write(p []byte) (int, error) {
	s.mu.Lock()
	pass := p
	if s.armed {
		pass = p[:min(len(p), s.left)]
		s.left -= len(pass)
	}
	s.mu.Unlock()
	_, err := s.Conn.Write(pass)
	if len(pass) < len(p) || err != nil {
		s.once.Do(func() { close(s.stalled) })
	}
	return len(p), err
}

// sendHalves opens a connection with 16 streams that are served, and sends half a request of 2 MiB on each.
func (p *secureProgram) sendHalves(t *testing.T) *stallingConn {
	t.Helper()
	who := p.mesh.TLS(testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/thief"}})
	who.RootCAs = p.ca.Pool()
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.xdsAddr)
	must(t, err)
	stalling := &stallingConn{Conn: raw, stalled: make(chan struct{})}
	once := make(chan net.Conn, 1)
	once <- stalling
	conn, err := grpc.NewClient(p.xdsAddr, grpc.WithTransportCredentials(credentials.NewTLS(who)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case c := <-once:
				return c, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	var streams []*xdstest.Client
	for range 16 {
		c := p.openNode(t, conn, nodeOf("thief-1"), map[string]any{"SERVICE_ACCOUNT": "thief"})
		_, err := c.Receive(t.Context())
		must(t, err)
		streams = append(streams, c)
	}
	stalling.arm(16 << 20)
	for _, c := range streams {
		go func() { _ = c.Send(xdstest.Request{Type: xdstest.EDS, Names: []string{strings.Repeat("x", 2<<20)}}) }()
	}
	return stalling
}

// TestR07HalfMessages: a caller sends half of a large request on each of its streams and never the rest. What the hub keeps
// of them is bounded; streams of others go on, and a proxy that returns with a large request is served.
func TestR07HalfMessages(t *testing.T) {
	p := startSecureProgram(t, "true", "xds: {maxPartialMessageBytes: 8388608}\n")
	open := p.open(t, p.connection(t, "127.0.0.1"))
	must(t, p.applyHost("before"))
	p.receives(t, open, "outbound|80||before.example")
	before := p.memory(t, "VmRSS")
	for range 12 {
		<-p.sendHalves(t).stalled
	}
	grown := p.memory(t, "VmHWM") - before
	if grown > 150 {
		t.Errorf("the memory of the hub grew by %d MiB from %d, for 192 MiB of half messages", grown, before)
	}
	p.awaitCount(t, `isthmus_connections_refused_total{listener="xds",reason="messages"}`)
	must(t, p.applyHost("after"))
	p.receives(t, open, "outbound|80||after.example")
	returns := p.open(t, p.connection(t, "127.0.0.1"))
	initial := map[string]string{}
	for n := range 10_000 {
		initial[fmt.Sprintf("outbound|80||%0100d.example", n)] = "1"
	}
	must(t, returns.Send(xdstest.Request{Type: xdstest.EDS, Initial: initial}))
	p.receives(t, returns, "outbound|80||after.example")
}

// awaitCount waits until the counter is not zero.
func (p *secureProgram) awaitCount(t *testing.T, counter string) {
	t.Helper()
	p.await(t, counter, func() error {
		_, metrics, err := p.health.get("/metrics")
		if _, n, has := strings.Cut(metrics, counter+" "); err == nil && (!has || strings.HasPrefix(n, "0\n")) {
			err = fmt.Errorf("it is 0 or missing: %t", has)
		}
		return err
	})
}
