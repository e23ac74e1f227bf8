package xds

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a gRPC stream inside a bubble of synctest.
type line struct {
	ctx    context.Context
	toHub  chan proto.Message
	toPeer chan *discoveryv3.DiscoveryResponse
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
	var r discoveryv3.DiscoveryResponse
	if err := (codec{}).Unmarshal(data, &r); err != nil {
		return err
	}
	select {
	case l.toPeer <- &r:
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

// bubble is a hub and one SotW stream to it.
type bubble struct {
	*line
	writer *federation.Writer
	ended  chan error
	cancel context.CancelFunc
}

func newBubble(services ...serviceDelta) *bubble {
	return newBubbleWith(func(*Options) {}, services...)
}

func newBubbleWith(change func(*Options), services ...serviceDelta) *bubble {
	a := federation.NewAggregate(nil)
	b := &bubble{writer: a.Open(source1), ended: make(chan error, 1)}
	for _, s := range services {
		b.writer.Update(federation.Edit{Services: s})
	}
	o := Options{Snapshots: a, Fleet: fleet.New(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	change(&o)
	server := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	b.line, b.cancel = &line{ctx: ctx, toHub: make(chan proto.Message), toPeer: make(chan *discoveryv3.DiscoveryResponse)}, cancel
	go func() { defer cancel(); b.ended <- server.serve(b.line, false) }()
	return b
}

func endpointsOfWeb(nonce string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{Node: node("web-1"), TypeUrl: xdstest.EDS, ResourceNames: []string{cluster("web")}, ResponseNonce: nonce}
}

func TestX35ManyChangesMakeFewResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(service("web", 1))
		b.toHub <- endpointsOfWeb("")
		first := <-b.toPeer
		b.toHub <- endpointsOfWeb(first.Nonce)
		var got []*discoveryv3.DiscoveryResponse
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			for {
				select {
				case r := <-b.toPeer:
					got = append(got, r)
					b.toHub <- endpointsOfWeb(r.Nonce)
				case <-time.After(3 * time.Second):
					return
				}
			}
		}()
		for i := range 200 {
			b.writer.Update(federation.Edit{Services: service("web", 1, 2+i)})
			time.Sleep(500 * time.Microsecond) // of the bubble's clock
		}
		<-followed
		if len(got) > 8 || len(got) < 2 {
			t.Fatalf("%d responses", len(got))
		}
		want := newBubble(service("web", 1, 201))
		want.toHub <- endpointsOfWeb("")
		if r := <-want.toPeer; r.VersionInfo != got[len(got)-1].VersionInfo {
			t.Error("the last response is not the last state")
		}
		want.cancel()
		b.cancel()
	})
}

func TestX09VersionsAreTheSameOnEveryHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versions := map[string]bool{}
		for _, services := range [][]serviceDelta{{service("a", 1), service("web", 2)}, {service("web", 1), service("web", 2), service("a", 1)}} {
			b := newBubble(services...)
			b.toHub <- endpointsOfWeb("")
			versions[(<-b.toPeer).VersionInfo] = true
			b.cancel()
		}
		if len(versions) != 1 {
			t.Errorf("versions are %v", versions)
		}
	})
}

func TestBX01SilentStreamsEndAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble()
		began := time.Now()
		wantCode(t, <-b.ended, codes.DeadlineExceeded)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

func TestClientThatDoesNotReadIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(service("web", 1))
		b.toHub <- endpointsOfWeb("")
		began := time.Now()
		wantCode(t, <-b.ended, codes.DeadlineExceeded)
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

func TestClientThatClosesEndsTheStreamWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(service("web", 1))
		b.toHub <- endpointsOfWeb("")
		<-b.toPeer
		close(b.toHub)
		if err := <-b.ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		c := newBubble(service("web", 1))
		c.toHub <- endpointsOfWeb("")
		<-c.toPeer
		c.cancel()
		if err := <-c.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

// interrupted calls back whenever the newest snapshot is asked for.
type interrupted struct {
	Snapshots
	asked func()
}

func (i *interrupted) Latest() *federation.Snapshot {
	i.asked()
	return i.Snapshots.Latest()
}

// The client goes at the worst moment: between the decision to send it
// something and the sending.
func TestClientThatGoesWhileItIsAnsweredEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		between := interrupted{asked: func() {}}
		b := newBubbleWith(func(o *Options) { between.Snapshots, o.Snapshots = o.Snapshots, &between }, service("web", 1))
		b.toHub <- endpointsOfWeb("")
		b.toHub <- endpointsOfWeb((<-b.toPeer).Nonce)
		time.Sleep(time.Second) // of the bubble's clock: the next push goes at once
		between.asked = func() {
			between.asked = func() {}
			b.cancel()
			synctest.Wait() // until the stream's other goroutines have ended
		}
		b.writer.Update(federation.Edit{Services: service("web", 1, 2)})
		if err := <-b.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}
