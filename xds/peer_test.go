package xds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

// slowness tells when a client was found to be too slow.
type slowness struct {
	uncounted
	once  sync.Once
	found chan struct{}
}

// Count is part of Metrics.
func (s *slowness) Count(e Event, _ envoy.Type) {
	if e == TooSlow {
		s.once.Do(func() { close(s.found) })
	}
}

// asker opens a stream beside ADS, over which a client asks as often as it likes.
type asker func(t *testing.T, h *hub) (ask func() error, stream grpc.ClientStream, answer proto.Message)

// curious are all such streams.
var curious = map[string]asker{
	"health checks": func(t *testing.T, h *hub) (func() error, grpc.ClientStream, proto.Message) {
		h.gatewaysIn("shop")
		var all []string
		for i := range 100 {
			all = append(all, fmt.Sprintf("192.0.2.%d", i+1))
		}
		h.gatewaysOf("n2", all...)
		c := h.checker(router())
		return func() error { c.ask(router()); return nil }, c, &healthv3.HealthCheckSpecifier{}
	},
	"client status": func(t *testing.T, h *hub) (func() error, grpc.ClientStream, proto.Message) {
		c, err := statusv3.NewClientStatusDiscoveryServiceClient(h.conn).StreamClientStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return c.Send(&statusv3.ClientStatusRequest{}) }, c, &statusv3.ClientStatusResponse{}
	},
	"istioctl": func(t *testing.T, h *hub) (func() error, grpc.ClientStream, proto.Message) {
		c, err := discoveryv3.NewAggregatedDiscoveryServiceClient(h.conn).StreamAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "istioctl"}, TypeUrl: string(syncType)}
		return func() error { return c.Send(r) }, c, &discoveryv3.DiscoveryResponse{}
	},
}

// manyProxies make answers about them large.
func (h *hub) manyProxies() {
	for i := range 100 {
		h.fleet.Connect(fleet.Proxy{NodeID: fmt.Sprintf("%d-%s", i, strings.Repeat("x", 1000)), Cluster: "c1"})
	}
}

// TestR90ClientsThatReadNothingLoseTheirStream: they ask and take no answer.
func TestR90ClientsThatReadNothingLoseTheirStream(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(curious)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := &slowness{found: make(chan struct{})}
			h := debugHub(t, inspects(true), func(o *Options) {
				o.Metrics, o.Probes, o.Limits = slow, newReports(), Limits{Send: 50 * time.Millisecond, Burst: 1 << 20}
			})
			h.manyProxies()
			ask, stream, answer := curious[name](t, h)
			for range 100 { // more than the network holds
				if err := ask(); err != nil {
					break // the stream is over already
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			select {
			case <-slow.found:
			case <-ctx.Done():
				t.Fatal("the client is not found to be too slow")
			}
			if err := last(stream, answer); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("the stream ends with %v", err)
			}
		})
	}
}

// last reads the stream to its end, and returns why it ended.
func last(stream grpc.ClientStream, m proto.Message) error {
	for {
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
	}
}

// TestR90IdleClientsDoNotDelayTheEnd: a hub that ends tells clients that wait with their next
// question.
func TestR90IdleClientsDoNotDelayTheEnd(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(curious)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := debugHub(t, inspects(true), func(o *Options) { o.Probes = newReports() })
			ask, stream, answer := curious[name](t, h)
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			if err := stream.RecvMsg(answer); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := h.server.Run(ctx); err != nil {
				t.Error(err)
			}
			if err := last(stream, answer); status.Code(err) != codes.Unavailable {
				t.Errorf("the stream ends with %v", err)
			}
		})
	}
}
