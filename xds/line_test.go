package xds

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

// told is a response in either variant.
type told interface {
	proto.Message
	GetNonce() string
}

// versionOf is the version of the type.
func versionOf(r told) string {
	if r, ok := r.(*discoveryv3.DeltaDiscoveryResponse); ok {
		return r.GetSystemVersionInfo()
	}
	return r.(*discoveryv3.DiscoveryResponse).GetVersionInfo()
}

// line is a gRPC stream inside a bubble of synctest.
type line struct {
	ctx    context.Context //nolint:containedctx // a gRPC stream has one
	delta  bool
	toHub  chan proto.Message
	toPeer chan told
}

func (l *line) Context() context.Context     { return l.ctx }
func (l *line) SetHeader(metadata.MD) error  { return nil }
func (l *line) SendHeader(metadata.MD) error { return nil }
func (l *line) SetTrailer(metadata.MD)       {}

func (l *line) RecvMsg(m any) error {
	select {
	case in, open := <-l.toHub:
		if !open {
			return io.EOF
		}
		proto.Merge(m.(proto.Message), in)
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

func (l *line) SendMsg(m any) error {
	data, err := codec{}.Marshal(m)
	if err != nil {
		return err
	}
	var r told = new(discoveryv3.DiscoveryResponse)
	if l.delta {
		r = new(discoveryv3.DeltaDiscoveryResponse)
	}
	if err := (codec{}).Unmarshal(data, r); err != nil {
		return err
	}
	select {
	case l.toPeer <- r:
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

// bubble is a hub and one stream to it.
type bubble struct {
	*line
	writer *federation.Writer
	ended  chan error
	cancel context.CancelFunc
}

func newBubble(delta bool, services ...serviceDelta) *bubble {
	return newBubbleWith(func(*Options) {}, delta, services...)
}

func newBubbleWith(change func(*Options), delta bool, services ...serviceDelta) *bubble {
	a := federation.NewAggregate(nil)
	b := &bubble{writer: a.Open(source1), ended: make(chan error, 1)}
	b.set(services...)
	o := Options{Snapshots: a, Fleet: fleet.New(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	change(&o)
	server := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	b.line, b.cancel = &line{ctx: ctx, delta: delta, toHub: make(chan proto.Message), toPeer: make(chan told)}, cancel
	go func() { defer cancel(); b.ended <- server.serve(b.line, delta) }()
	return b
}

func (b *bubble) set(services ...serviceDelta) {
	for _, s := range services {
		b.writer.Update(federation.Edit{Services: s})
	}
}

// ask asks for the endpoints of web.
func (b *bubble) ask() {
	if b.delta {
		b.toHub <- &discoveryv3.DeltaDiscoveryRequest{Node: node("web-1"), TypeUrl: xdstest.EDS, ResourceNamesSubscribe: []string{cluster("web")}}
		return
	}
	b.toHub <- &discoveryv3.DiscoveryRequest{Node: node("web-1"), TypeUrl: xdstest.EDS, ResourceNames: []string{cluster("web")}}
}

func (b *bubble) ack(r told) {
	if b.delta {
		b.toHub <- &discoveryv3.DeltaDiscoveryRequest{TypeUrl: xdstest.EDS, ResponseNonce: r.GetNonce()}
		return
	}
	b.toHub <- &discoveryv3.DiscoveryRequest{TypeUrl: xdstest.EDS, ResourceNames: []string{cluster("web")}, ResponseNonce: r.GetNonce()}
}

// pass lets time pass on the bubble's clock.
func pass(d time.Duration) { <-time.NewTimer(d).C }

// inBubbles runs the test with SotW and with delta, each in a bubble.
func inBubbles(t *testing.T, run func(t *testing.T, delta bool)) {
	bothVariants(t, func(t *testing.T, delta bool) {
		synctest.Test(t, func(t *testing.T) { run(t, delta) })
	})
}
