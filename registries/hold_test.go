package registries_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

// relists says one list at its first start, further ones when told, and at each
// later start what it is told to say then.
func relists(first federation.Edit, again <-chan federation.Edit, later federation.Edit) []registrytest.Fake {
	return []registrytest.Fake{
		func(ctx context.Context, to registries.Sink) error {
			to.Update(first)
			for {
				select {
				case e := <-again:
					to.Update(e)
				case <-ctx.Done():
					to.Update(gone("s0"))
					return nil
				}
			}
		},
		registrytest.Says(later),
	}
}

func TestF44SuspiciousListIsHeldUntilASecondOneAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := make(chan federation.Edit)
		h := start(t, "", cluster("c1", "", relists(registrytest.Full(1, 30), again, registrytest.Full(1, 14))...))
		defer h.stop()
		again <- registrytest.Full(1, 14)
		synctest.Wait()
		s := h.wantPhase(t, "c1", federation.Held)
		if !strings.Contains(s.Message, "16 of 30 services") {
			t.Errorf("the message is %q", s.Message)
		}
		h.wantServices(t, 30)
		after(4900 * time.Millisecond)
		h.wantPhase(t, "c1", federation.Held)
		h.wantServices(t, 30)
		after(200 * time.Millisecond)
		h.wantPhase(t, "c1", federation.Ready)
		h.wantServices(t, 14)
	})
}

// TestF44HeldStatusNamesNoTroubleThatIsOver: the list that is held came over the link whose
// trouble was reported before.
func TestF44HeldStatusNamesNoTroubleThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mended := make(chan struct{})
		h := start(t, "", cluster("c1", "", func(ctx context.Context, to registries.Sink) error {
			to.Update(registrytest.Full(1, 30))
			to.Status(federation.RegistryStatus{Phase: federation.Stale, Message: "connection refused"})
			<-mended
			to.Update(registrytest.Full(1, 14))
			<-ctx.Done()
			return nil
		}, silent))
		defer h.stop()
		if s := h.wantPhase(t, "c1", federation.Stale); s.Message != "connection refused" {
			t.Errorf("the message is %q", s.Message)
		}
		close(mended)
		synctest.Wait()
		if s := h.wantPhase(t, "c1", federation.Held); !strings.HasPrefix(s.Message, "the list lacks 16 of 30 services") ||
			strings.Contains(s.Message, "refused") {
			t.Errorf("the message is %q", s.Message)
		}
		after(time.Minute) // the next start gets nothing
		if s := h.wantPhase(t, "c1", federation.Held); strings.Contains(s.Message, "refused") {
			t.Errorf("later the message is %q", s.Message)
		}
	})
}

func TestF44WholeSecondListLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := make(chan federation.Edit)
		h := start(t, "", cluster("c1", "", relists(registrytest.Full(1, 30), again, registrytest.Full(1, 31))...))
		defer h.stop()
		before := len(h.history.Since(0))
		again <- registrytest.Full(1, 0)
		synctest.Wait()
		h.wantPhase(t, "c1", federation.Held)
		after(6 * time.Second)
		if s := h.wantPhase(t, "c1", federation.Ready); s.Message != "" {
			t.Errorf("the message %q stays", s.Message)
		}
		h.wantServices(t, 31)
		for _, s := range h.history.Since(0)[before:] {
			if s.Services().Len() < 30 {
				t.Errorf("version %d has %d services", s.Version(), s.Services().Len())
			}
		}
	})
}

func TestHeldListThatKeepsShrinkingIsNotProven(t *testing.T) {
	wantHeldThenEmpty(t, 100, 40)
}

// TestSmallHeldListProvesNoLossOfAll: of 40 services a list has 9, too few for
// their loss to be suspicious by itself; the next list, an empty one, does not
// say the same.
func TestSmallHeldListProvesNoLossOfAll(t *testing.T) {
	wantHeldThenEmpty(t, 40, 9)
}

// wantHeldThenEmpty lists some services, then fewer, which are held, then none
// for good: the cluster keeps what it had until the empty list is proven.
func wantHeldThenEmpty(t *testing.T, services, fewer int) {
	synctest.Test(t, func(t *testing.T) {
		again := make(chan federation.Edit)
		h := start(t, "", cluster("c1", "", relists(registrytest.Full(1, services), again, registrytest.Full(1, 0))...))
		defer h.stop()
		again <- registrytest.Full(1, fewer)
		after(6 * time.Second)
		h.wantPhase(t, "c1", federation.Held)
		h.wantServices(t, services)
		after(6 * time.Second)
		h.wantPhase(t, "c1", federation.Ready)
		h.wantServices(t, 0)
	})
}

func TestConfirmBelievesTheNextListAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := make(chan federation.Edit)
		h := start(t, "", cluster("c1", "", relists(registrytest.Full(1, 30), again, registrytest.Full(1, 2))...))
		defer h.stop()
		if err := h.Confirm("c1"); err == nil {
			t.Error("a release of what is not held is not an error")
		}
		again <- registrytest.Full(1, 2)
		after(time.Second)
		h.wantPhase(t, "c1", federation.Held)
		if err := h.Confirm("c1"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		h.wantPhase(t, "c1", federation.Ready)
		h.wantServices(t, 2)
	})
}

func TestWhatIsHeld(t *testing.T) {
	one := func(endpoints int) federation.Edit {
		e := registrytest.Full(1, 0)
		e.Services.Set[registrytest.Key("only")] = registrytest.Shard(1, endpoints)
		return e
	}
	others := one(0)
	others.Services.Set[registrytest.Key("only")] = registrytest.Shard(2, 25)
	watch := federation.Edit{}
	for s := range registrytest.Full(1, 30).Services.Set {
		watch.Services.Gone = append(watch.Services.Gone, s)
	}
	for name, c := range map[string]struct {
		first, then federation.Edit
		held        bool
	}{
		"half of the services":                   {registrytest.Full(1, 30), registrytest.Full(1, 15), false},
		"more than half of the services":         {registrytest.Full(1, 30), registrytest.Full(1, 14), true},
		"more than half of 9 services":           {registrytest.Full(1, 9), registrytest.Full(1, 0), false},
		"services that have few, endpoints many": {registrytest.Full(1, 12), registrytest.Full(1, 5), true},
		"half of the endpoints":                  {one(24), one(12), false},
		"more than half of the endpoints":        {one(24), one(11), true},
		"as many endpoints, all others":          {one(25), others, true},
		"a watch event that removes everything":  {registrytest.Full(1, 30), watch, false},
		"the first list of all":                  {registrytest.Full(1, 0), registrytest.Full(1, 40), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				again := make(chan federation.Edit)
				h := start(t, "", cluster("c1", "", relists(c.first, again, c.then)...))
				defer h.stop()
				again <- c.then
				synctest.Wait()
				want := federation.Ready
				if c.held {
					want = federation.Held
				}
				h.wantPhase(t, "c1", want)
			})
		})
	}
}
