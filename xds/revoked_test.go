package xds

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestF84RevokedStreamsEndWithinAMinute, with the times of a hub that is configured
// nothing else: also where what was revoked is found out at the second look, as it
// is with tokens.
func TestF84RevokedStreamsEndWithinAMinute(t *testing.T) {
	inBubbles(t, func(t *testing.T, delta bool) {
		for looks := range 2 {
			g := &gatekeeper{}
			b := newBubbleWith(func(o *Options) { o.Access = g }, delta, service("web", 1))
			b.ask()
			b.ack(<-b.toPeer)
			pass(5*time.Minute + 7*time.Second)
			if len(b.ended) > 0 {
				t.Fatalf("a stream that may go on ended: %v", <-b.ended)
			}
			revoked := time.Now()
			g.mu.Lock()
			before := g.asked
			g.mu.Unlock()
			g.refuseAfter(before+looks, errors.New("the trust bundle is another"))
			err := <-b.ended
			if took := time.Since(revoked); status.Code(err) != codes.PermissionDenied || took > time.Minute {
				t.Errorf("after %s it ends with %v, want at most a minute", took, err)
			}
		}
	})
}
