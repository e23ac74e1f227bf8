package registries_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
)

// TestF56AttachAndDetachFromManySides has many callers attach, replace, refuse
// and detach one cluster at the same time: whoever attaches last is heard, and
// whoever detaches last leaves nothing.
func TestF56AttachAndDetachFromManySides(t *testing.T) {
	h := &hub{Aggregate: federation.NewAggregate(nil)}
	h.Supervisor = registries.New(registries.Options{Aggregate: h.Aggregate, Dir: t.TempDir(), Grace: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = h.Run(ctx) })
	spec := federation.ClusterSpec{Provider: federation.Mock}
	acts := []func(){
		func() { h.Attach(cluster("c1", "a", says(full(1, 3)))) },
		func() { h.Attach(cluster("c1", "b", says(full(2, 3)))) },
		func() { h.Refuse("c1", spec, "is refused") },
		func() { h.Detach("c1") },
		func() { h.Problem("c1", "x", &federation.Problem{Code: "X"}) },
	}
	for round := range 200 {
		var together sync.WaitGroup
		for i := range 2 * len(acts) {
			together.Go(acts[i%len(acts)])
		}
		together.Wait()
		h.Attach(cluster("c1", "last", says(full(3, 7))))
		if !eventually(h, func(s *federation.Snapshot) bool {
			c, ok := s.Cluster("c1")
			return ok && c.Spec == spec && c.Identity.UID == "uid-3" && c.Status.Phase == federation.Ready
		}) {
			c, ok := h.Latest().Cluster("c1")
			t.Fatalf("round %d: the cluster that was attached last is %+v (%v)", round, c, ok)
		}
		h.Detach("c1")
		if _, ok := h.Latest().Cluster("c1"); ok || h.Latest().CountServices() > 0 {
			t.Fatalf("round %d: something is left of a detached cluster", round)
		}
	}
}

// eventually waits until a snapshot is as wanted, at most a minute.
func eventually(h *hub, want func(*federation.Snapshot) bool) bool {
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		s := h.Latest()
		if want(s) {
			return true
		}
		select {
		case <-s.Superseded():
		case <-limit.C:
			return false
		}
	}
}
