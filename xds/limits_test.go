package xds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

// TestR07InitialResourceVersions: what a client says it has is bounded as what it asks for. One more than the limit ends
// the stream; as many as the limit are taken.
func TestR07InitialResourceVersions(t *testing.T) {
	v := guarded(t, &gatekeeper{}, func(o *Options) { o.Limits.Names = 100 })
	v.set(service("web", 1))
	has := map[string]string{}
	for i := range 100 {
		has[fmt.Sprintf("outbound|80||gone-%d.example", i)] = "1"
	}
	c := v.client(xdstest.Options{Delta: true})
	c.get(xdstest.Request{Type: xdstest.CDS, Initial: has})
	has["outbound|80||one-more.example"] = "1"
	c = v.client(xdstest.Options{Delta: true})
	_ = c.Send(xdstest.Request{Type: xdstest.CDS, Initial: has})
	if err := c.ends(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the stream ends with %v", err)
	}
	if n := v.counts.of(TooMuch); n != 1 {
		t.Errorf("%d streams are counted as too much", n)
	}
}

// TestR07StreamsOfAnIdentity: callers with one identity share a number of streams; others have theirs, and a stream that
// ends gives its place back.
func TestR07StreamsOfAnIdentity(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		g := &gatekeeper{caller: Caller{Identity: "shop/web"}}
		v := guarded(t, g, func(o *Options) { o.Limits.Streams = 2 })
		v.set(service("web", 1))
		open := func() error {
			c := v.client(xdstest.Options{Delta: delta})
			_ = c.Send(xdstest.Request{Type: xdstest.CDS}) // the stream may be over already
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := c.Receive(ctx)
			return err
		}
		first := v.client(xdstest.Options{Delta: delta})
		first.get(xdstest.Request{Type: xdstest.CDS})
		if err := open(); err != nil {
			t.Fatalf("the second stream: %v", err)
		}
		if err := open(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the third stream: %v", err)
		}
		g.become("shop/cart")
		if err := open(); err != nil {
			t.Errorf("a stream of another identity: %v", err)
		}
		g.become("shop/web")
		first.Close()
		testbed.WaitFor(t, patience, "the place of a stream that has ended", open)
	})
}

func (g *gatekeeper) become(identity string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caller.Identity = identity
}

// TestR12KnownCallersDoNotFillTheLog: what a proxy does wrong again and again is counted each time and logged a few times.
func TestR12KnownCallersDoNotFillTheLog(t *testing.T) {
	v := newSecretsHub(t, false)
	v.set(service("web", 1))
	c := v.client(xdstest.Options{Delta: true})
	c.get(xdstest.Request{Type: xdstest.CDS})
	for range 100 {
		c.ask(xdstest.Request{Type: "no.such.type", Names: []string{"a"}})
	}
	c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web")}})
	if n := v.counts.of(UnknownType); n != 100 {
		t.Errorf("%d requests are counted", n)
	}
	if n := strings.Count(v.log.String(), "its type is not supported"); n == 0 || n > 10 {
		t.Errorf("100 requests wrote %d lines", n)
	}
}
