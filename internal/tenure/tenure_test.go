package tenure_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/internal/tenure"
)

// record is a value in memory.
type record struct {
	mu       sync.Mutex
	value    []byte
	revision int64
	down     bool
}

func (r *record) Load(context.Context) ([]byte, int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return nil, 0, errors.New("the store does not answer")
	}
	return r.value, r.revision, nil
}

func (r *record) Save(_ context.Context, value []byte, revision int64) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.down:
		return false, errors.New("the store does not answer")
	case revision != r.revision:
		return false, nil
	}
	r.value, r.revision = value, revision+1
	return true, nil
}

// cut has the store of one hub not answer.
type cut struct {
	*record
	mu   sync.Mutex
	open bool
}

func (c *cut) Load(ctx context.Context) ([]byte, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return nil, 0, errors.New("the link is cut")
	}
	return c.record.Load(ctx)
}

func start(hub string, to tenure.Record) (t *tenure.Tenure, stop func()) {
	t = tenure.New(tenure.Options{Hub: hub, What: "a test", Record: to, TTL: 10 * time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = t.Run(ctx) })
	return t, func() { cancel(); running.Wait() }
}

// TestG33OneHubIsTheOwner: of two hubs one is the owner, and never both; the other takes over
// at once when it stops, and after the TTL when it is cut off.
func TestG33OneHubIsTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &record{}
		link := &cut{record: store, open: true}
		first, stopFirst := start("a", link)
		synctest.Wait()
		second, stopSecond := start("b", store)
		defer stopSecond()
		for range 100 {
			pass(time.Second)
			if !first.Owns() || second.Owns() {
				t.Fatalf("the first is the owner: %v, the second: %v", first.Owns(), second.Owns())
			}
		}
		link.mu.Lock()
		link.open = false
		link.mu.Unlock()
		took := time.Now()
		for !second.Owns() {
			pass(100 * time.Millisecond)
			if first.Owns() && second.Owns() {
				t.Fatal("both are the owner")
			}
		}
		if d := time.Since(took); d < 8*time.Second || d > 16*time.Second {
			t.Errorf("it took over after %v", d)
		}
		stopFirst()
		third, stopThird := start("c", store)
		defer stopThird()
		stopSecond()
		pass(3 * time.Second) // it looks every 2 s
		if !third.Owns() {
			t.Error("nobody took over from a hub that stopped")
		}
	})
}

// TestG33ALoneHubIsTheOwner at once, without a store.
func TestG33ALoneHubIsTheOwner(t *testing.T) {
	if !tenure.New(tenure.Options{Hub: "a"}).Owns() {
		t.Error("it is not")
	}
}

// pass lets time pass in the bubble of a test.
func pass(d time.Duration) { <-time.NewTimer(d).C }
