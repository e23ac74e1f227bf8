package xds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

func wantCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Fatalf("the stream ended with %v, want %s", err, want)
	}
}

func TestX36StreamsAreHeldUntilTheHubIsReady(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		ready := make(chan struct{})
		h := newHub(t, func(o *Options) { o.Ready = ready })
		c := h.client(xdstest.Options{Delta: delta, Node: router()})
		c.ask(xdstest.Request{Type: xdstest.CDS})
		h.eventually("the stream is there", func(v *fleet.Value) bool { return v.Count() == 1 })
		h.set(service("web", 1))
		close(ready)
		wantNames(t, c.accept(xdstest.CDS), cluster("web")) // the first response, not an empty one before
	})
}

// manyLabels are more than the hub keeps of a node.
func manyLabels() *structpb.Struct {
	labels := map[string]*structpb.Value{}
	for i := range 100 {
		labels[fmt.Sprint("label-", i)] = structpb.NewStringValue(strings.Repeat("a", 1000))
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"LABELS": structpb.NewStructValue(&structpb.Struct{Fields: labels})}}
}

func TestX37NodeIsRequiredAndStays(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		for name, n := range map[string]*corev3.Node{
			"none": {}, "three parts": {Id: "sidecar~10.0.0.1~a"}, "no type": {Id: "~10.0.0.1~a~b"},
			"control characters": {Id: "sidecar~10.0.0.1~a\x1b~b"}, "too many labels": {Id: node("a").Id, Metadata: manyLabels()},
			"long": {Id: "sidecar~10.0.0.1~a~" + strings.Repeat("b", 64<<10)},
		} {
			t.Run(name, func(t *testing.T) {
				c := h.client(xdstest.Options{Delta: delta, Node: n})
				c.ask(xdstest.Request{Type: xdstest.CDS})
				wantCode(t, c.ends(), codes.InvalidArgument)
			})
		}
		t.Run("missing", func(t *testing.T) {
			c, err := xdstest.Open(context.Background(), h.conn, xdstest.Options{Delta: delta})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.Send(xdstest.Request{Type: xdstest.CDS})
			wantCode(t, client{t, c}.ends(), codes.InvalidArgument)
		})
		t.Run("changed", func(t *testing.T) {
			c := h.client(xdstest.Options{Delta: delta})
			c.get(xdstest.Request{Type: xdstest.CDS})
			c.get(xdstest.Request{Type: xdstest.LDS, Node: proto.Clone(node("web-1")).(*corev3.Node)}) // the same: fine
			c.ask(xdstest.Request{Type: xdstest.RDS, Node: node("web-2")})
			wantCode(t, c.ends(), codes.InvalidArgument)
		})
		h.eventually("no stream is left", func(v *fleet.Value) bool { return v.Count() == 0 })
	})
}

func TestX38NodeInTheFirstMessageServesAllTypes(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("web", 1))
		c := h.client(xdstest.Options{Delta: delta}) // says its node once
		for _, q := range []xdstest.Request{
			{Type: xdstest.LDS},
			{Type: xdstest.RDS, Names: []string{"80"}},
			{Type: xdstest.CDS},
			{Type: xdstest.EDS, Names: []string{cluster("web")}},
		} {
			if r := c.get(q); len(r.Resources) == 0 {
				t.Errorf("%s is empty", q.Type)
			}
		}
	})
}

func TestX39UnknownTypesAreLeftAlone(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		c := h.client(xdstest.Options{Delta: delta})
		for _, typ := range []string{"type.googleapis.com/envoy.config.core.v3.Address", "", "api", strings.Repeat("x", 512)} {
			c.ask(xdstest.Request{Type: typ, Names: []string{"a"}})
		}
		wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS}), fixedClusters...)
	})
}

func TestX40TwoStreamsOfOneNode(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		h.set(service("web", 1))
		one, two := h.client(xdstest.Options{Delta: delta}), h.client(xdstest.Options{Delta: true})
		q := xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web")}}
		one.get(q)
		two.get(q)
		h.eventually("both are there", func(v *fleet.Value) bool { return len(v.ByID(node("web-1").Id)) == 2 })
		one.Close()
		h.eventually("one is left", func(v *fleet.Value) bool { return len(v.ByID(node("web-1").Id)) == 1 })
		h.set(service("web", 1, 2))
		r := two.accept(xdstest.EDS)
		h.eventually("it goes on", func(v *fleet.Value) bool {
			return v.ByID(node("web-1").Id)[0].Sync[xdstest.EDS].VersionAcked == r.Version
		})
	})
}

func TestX33EachOfAThousandStreamsGetsOneResponse(t *testing.T) {
	h := newHub(t, func(o *Options) { o.Limits.Burst = 1000 })
	h.set(service("web", 1))
	clients := make([]client, 1000)
	for i := range clients {
		clients[i] = h.client(xdstest.Options{Delta: i%2 == 0, Node: node(fmt.Sprint("web-", i)), Buffer: 4})
		clients[i].get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web")}})
	}
	h.set(service("web", 1, 2))
	for _, c := range clients {
		c.accept(xdstest.EDS)
	}
	for _, c := range clients { // nothing else came: the next is the answer to this
		c.get(xdstest.Request{Type: xdstest.CDS})
	}
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	if n := len(h.server.groups); n > 8 {
		t.Errorf("%d groups for equal proxies", n)
	}
}

func TestGroupsGoWithTheirLastStream(t *testing.T) {
	h := newHub(t)
	groups := func() int {
		h.server.mu.Lock()
		defer h.server.mu.Unlock()
		return len(h.server.groups)
	}
	one, two := h.client(xdstest.Options{}), h.client(xdstest.Options{Node: node("web-2"), Delta: true})
	one.get(xdstest.Request{Type: xdstest.CDS})
	two.get(xdstest.Request{Type: xdstest.CDS})
	before := groups()
	one.Close()
	h.eventually("one stream is gone", func(v *fleet.Value) bool { return v.Count() == 1 })
	if now := groups(); now != before || now == 0 {
		t.Errorf("%d groups before, %d after", before, now)
	}
	two.Close()
	h.eventually("the other is gone", func(v *fleet.Value) bool { return v.Count() == 0 })
	if now := groups(); now != 0 {
		t.Errorf("%d groups are left", now)
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	h := newHub(t)
	c := h.client(xdstest.Options{})
	c.get(xdstest.Request{Type: xdstest.CDS})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.server.Run(ctx) }()
	cancel()
	wantCode(t, c.ends(), codes.Unavailable)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBX05TooManyAndTooLongNamesEndTheStream(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		many := make([]string, DefaultLimits.Names+1)
		for i := range many {
			many[i] = fmt.Sprint(i)
		}
		for name, q := range map[string]xdstest.Request{
			"many": {Type: xdstest.EDS, Names: many}, "long": {Type: xdstest.EDS, Names: []string{strings.Repeat("a", 10<<10)}},
		} {
			t.Run(name, func(t *testing.T) {
				c := h.client(xdstest.Options{Delta: delta})
				c.ask(q)
				wantCode(t, c.ends(), codes.ResourceExhausted)
			})
		}
		t.Run("not UTF-8", func(t *testing.T) {
			c := h.client(xdstest.Options{Delta: delta})
			if err := c.Send(xdstest.Request{Type: xdstest.EDS, Names: []string{"\xff"}}); err == nil {
				t.Error("the client itself should refuse")
			}
		})
	})
}

func TestBX05NamesAddUpToTheLimit(t *testing.T) {
	h := newHub(t, func(o *Options) { o.Limits.Names = 3 })
	c := h.client(xdstest.Options{Delta: true})
	c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{"a", "b", "c"}})
	c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{"a", "d"}, Unsubscribe: []string{"b"}})
	c.ask(xdstest.Request{Type: xdstest.EDS, Names: []string{"e"}})
	wantCode(t, c.ends(), codes.ResourceExhausted)
}

// onlyBurst requests in a second are none after the burst, however slowly they come.
const onlyBurst = 1e-6

func TestBX08FloodsEndTheStream(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t, func(o *Options) { o.Limits.Requests = onlyBurst })
		c := h.client(xdstest.Options{Delta: delta})
		for range 1000 {
			if c.Send(xdstest.Request{Type: xdstest.EDS, Names: []string{"a"}, Nonce: "x"}) != nil {
				break
			}
		}
		wantCode(t, c.ends(), codes.ResourceExhausted)
	})
}

func TestBX10ForeignInitialVersionsAreUnknownNames(t *testing.T) {
	h := newHub(t)
	h.set(service("web", 1))
	initial := map[string]string{"": "", "*": "1"}
	for i := range 9_000 { // less than Limits.Names
		initial[fmt.Sprint("foreign-", i)] = "1"
	}
	c := h.client(xdstest.Options{Delta: true, Node: router()})
	r := c.get(xdstest.Request{Type: xdstest.CDS, Initial: initial})
	wantNames(t, r, cluster("web"))
	if len(r.Removed) != len(initial) {
		t.Errorf("%d of %d are removed", len(r.Removed), len(initial))
	}
}

// garbage is sent as it is.
type garbage struct{ codec }

func (garbage) Name() string { return "proto" }

func TestBX14GarbageEndsTheStreamOnly(t *testing.T) {
	h := newHub(t)
	c := h.client(xdstest.Options{})
	for name, data := range map[string]string{
		"wrong wire type": "\x0d\x01\x02\x03\x04\x22\x01t", "truncated": "\x0a\xff\xff\xff\x0f", "not UTF-8": "\x1a\x01\xff",
		"big": strings.Repeat("\x00", 5<<20),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := h.conn.NewStream(context.Background(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
				"/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources", grpc.ForceCodecV2(garbage{}))
			if err != nil {
				t.Fatal(err)
			}
			s.SendMsg(rawFrame(data))
			s.CloseSend()
			var r corev3.Node
			if err := s.RecvMsg(&r); status.Code(err) == codes.OK || status.Code(err) == codes.Unavailable {
				t.Errorf("ended with %v", err)
			}
		})
	}
	wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS}), fixedClusters...)
}
