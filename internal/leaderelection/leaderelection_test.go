package leaderelection_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/internal/leaderelection"
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

func start(hub string, to leaderelection.Record) (t *leaderelection.Elector, stop func()) {
	t = leaderelection.New(leaderelection.Options{Hub: hub, What: "a test", Record: to, TTL: 10 * time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = t.Run(ctx) })
	return t, func() { cancel(); running.Wait() }
}

// TestG33OneHubLeads: of two hubs one is the leader, and never both; the other takes over
// at once when it stops, and after the TTL when it is cut off.
func TestG33OneHubLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &record{}
		link := &cut{record: store, open: true}
		first, stopFirst := start("a", link)
		synctest.Wait()
		second, stopSecond := start("b", store)
		defer stopSecond()
		for range 100 {
			pass(time.Second)
			if !first.Leads() || second.Leads() {
				t.Fatalf("the first is the leader: %v, the second: %v", first.Leads(), second.Leads())
			}
		}
		link.mu.Lock()
		link.open = false
		link.mu.Unlock()
		took := time.Now()
		for !second.Leads() {
			pass(100 * time.Millisecond)
			if first.Leads() && second.Leads() {
				t.Fatal("both are the leader")
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
		if !third.Leads() {
			t.Error("nobody took over from a hub that stopped")
		}
	})
}

// TestG33ALoneHubLeads at once, without a store.
func TestG33ALoneHubLeads(t *testing.T) {
	if !leaderelection.New(leaderelection.Options{Hub: "a"}).Leads() {
		t.Error("it is not")
	}
}

// pass lets time pass in the bubble of a test.
func pass(d time.Duration) { <-time.NewTimer(d).C }
