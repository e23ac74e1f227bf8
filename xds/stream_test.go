package xds

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"isthmus.dev/isthmus/federation"
)

// gRPC does not stop looking after the certificate files of its own xDS clients.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("google.golang.org/grpc/credentials/tls/certprovider/pemfile.(*watcher).run"))
}

// lastState is the version of web's endpoints on a hub that never knew others.
func lastState(delta bool, endpoints ...int) string {
	b := newBubble(delta, service("web", endpoints...))
	defer b.cancel()
	b.ask()
	return versionOf(<-b.toPeer)
}

func TestX35ManyChangesMakeFewResponses(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		b := newBubble(delta, service("web", 1))
		defer b.cancel()
		b.ask()
		b.ack(<-b.toPeer)
		pass(time.Second)
		var got []told
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			quiet := time.NewTimer(3 * time.Second)
			for {
				select {
				case r := <-b.toPeer:
					got = append(got, r)
					b.ack(r)
				case <-quiet.C:
					return
				}
			}
		}()
		for i := range 200 {
			b.set(service("web", 1, 2+i))
			pass(500 * time.Microsecond)
		}
		<-followed
		if len(got) > 8 || len(got) < 2 {
			t.Fatalf("%d responses", len(got))
		}
		if versionOf(got[len(got)-1]) != lastState(delta, 1, 201) {
			t.Error("the last response is not the last state")
		}
	})
}

// The client takes nothing for two seconds: the response that is being sent is
// old when it comes, the next is the last state.
func TestX34ClientThatReadsLateGetsTheLastStateOnly(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		b := newBubble(delta, service("web", 1))
		defer b.cancel()
		b.ask()
		b.ack(<-b.toPeer)
		for i := range 100 {
			b.set(service("web", 1, 2+i))
			pass(20 * time.Millisecond)
		}
		b.ack(<-b.toPeer)
		last := <-b.toPeer
		b.ack(last)
		if versionOf(last) != lastState(delta, 1, 101) {
			t.Error("the second response is not the last state")
		}
		select {
		case r := <-b.toPeer:
			t.Errorf("a third response came: %v", r)
		case <-time.NewTimer(time.Minute).C:
		}
	})
}

func TestX09VersionsAreTheSameOnEveryHub(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		versions := map[string]bool{}
		for _, services := range [][]serviceDelta{{service("a", 1), service("web", 2)}, {service("web", 1), service("web", 2), service("a", 1)}} {
			b := newBubble(delta, services...)
			b.ask()
			versions[versionOf(<-b.toPeer)] = true
			b.cancel()
		}
		if len(versions) != 1 {
			t.Errorf("versions are %v", versions)
		}
	})
}

func TestBX01SilentStreamsEndAfterTenSeconds(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		b := newBubble(delta)
		began := time.Now()
		wantCode(t, <-b.ended, codes.DeadlineExceeded)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

func TestClientThatDoesNotReadIsLetGo(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		b := newBubble(delta, service("web", 1))
		b.ask()
		began := time.Now()
		wantCode(t, <-b.ended, codes.DeadlineExceeded)
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

func TestClientThatClosesEndsTheStreamWell(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		b := newBubble(delta, service("web", 1))
		b.ask()
		<-b.toPeer
		close(b.toHub)
		if err := <-b.ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		c := newBubble(delta, service("web", 1))
		c.ask()
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
	inBubbles(t, func(t *testing.T, delta bool) {
		between := interrupted{asked: func() {}}
		b := newBubbleWith(func(o *Options) { between.Snapshots, o.Snapshots = o.Snapshots, &between }, delta, service("web", 1))
		b.ask()
		b.ack(<-b.toPeer)
		pass(time.Second) // the next push goes at once
		synctest.Wait()
		between.asked = func() {
			between.asked = func() {}
			b.cancel()
			synctest.Wait() // until the stream's other goroutines have ended
		}
		b.set(service("web", 1, 2))
		if err := <-b.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}
