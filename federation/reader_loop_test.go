package federation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// follow is the loop of every reader: take the latest, ask what changed, work,
// move the cursor, wait. A failing step is tried again from its cursor.
func follow(ctx context.Context, a *Aggregate, from uint64, work func(*Snapshot, ChangeSet) error) {
	for cursor := from; ; {
		s := a.Latest()
		if c := s.ChangesSince(cursor); !c.Empty() && work(s, c) != nil {
			continue
		}
		cursor = s.Version()
		select {
		case <-s.Superseded():
		case <-ctx.Done():
			return
		}
	}
}

// publishNumbered publishes n versions of one service, told apart by port.
func publishNumbered(w *Writer, n int) {
	for i := 1; i <= n; i++ {
		w.Update(set(ShardKey{}, map[ServiceKey]*Shard{key("web.a", "a"): web("", endpoint("10.0.0.1", uint16(i)))}))
	}
}

func portOf(s *Snapshot) uint16 {
	svc, ok := s.Service(key("web.a", "a"))
	if !ok {
		return 0
	}
	return svc.Endpoints[0].Endpoints[0].Ports[0].Number
}

// TestSeed13OneEventIsDoneBeforeTheNextBegins: a handler is a reader here. While
// it works on one event later ones come, and none of them begins before it is
// done; its next call covers all of them.
func TestSeed13OneEventIsDoneBeforeTheNextBegins(t *testing.T) {
	const events = 100
	a := NewAggregate(nil)
	w := a.Open(shardOf("c1"))
	ctx, cancel := context.WithCancel(t.Context())
	begun, goOn := make(chan *Snapshot), make(chan struct{})
	var readers sync.WaitGroup
	var working atomic.Int32
	readers.Go(func() {
		follow(ctx, a, 0, func(s *Snapshot, _ ChangeSet) error {
			if working.Add(1) != 1 {
				t.Error("an event began while another was worked on")
			}
			begun <- s
			<-goOn
			working.Add(-1)
			return nil
		})
	})
	publishNumbered(w, 1)
	first := <-begun
	publishNumbered(w, events)
	select {
	case s := <-begun:
		t.Errorf("version %d began before version %d was done", s.Version(), first.Version())
	default:
	}
	if got := portOf(first); got != 1 {
		t.Errorf("what the reader works on became event %d under its hands", got)
	}
	goOn <- struct{}{}
	if next := <-begun; portOf(next) != events {
		t.Errorf("after event 1 came event %d, want the latest, %d", portOf(next), events)
	}
	cancel()
	goOn <- struct{}{}
	readers.Wait()
}

// TestSeed14ReadersSeeAThousandEventsInOrder: each reader may skip, and none
// sees an event after a later one, or the same twice; all see the last.
func TestSeed14ReadersSeeAThousandEventsInOrder(t *testing.T) {
	const events = 1000
	a := NewAggregate(nil)
	ctx, cancel := context.WithCancel(t.Context())
	var readers, done sync.WaitGroup
	for range 4 {
		done.Add(1)
		readers.Go(func() {
			var last uint16
			follow(ctx, a, 0, func(s *Snapshot, _ ChangeSet) error {
				now := portOf(s)
				if now <= last {
					t.Errorf("saw event %d after event %d", now, last)
				}
				last = now
				if now == events {
					done.Done()
				}
				return nil
			})
		})
	}
	publishNumbered(a.Open(shardOf("c1")), events)
	done.Wait()
	cancel()
	readers.Wait()
}

func TestSeed15ReaderNeverSeesAnOlderState(t *testing.T) {
	a := NewAggregate(nil)
	w := a.Open(shardOf("c1"))
	k := key("web.a", "a")
	for i := range 200 {
		w.Update(set(ShardKey{}, map[ServiceKey]*Shard{k: web("")}))
		created := a.Latest()
		if _, ok := created.Service(k); !ok {
			t.Fatalf("round %d: Update returned before its version was published", i)
		}
		w.Update(Edit{Services: Delta[ServiceKey, *Shard]{Gone: []ServiceKey{k}}})
		if _, ok := a.Latest().Service(k); ok {
			t.Fatalf("round %d: the deletion is not in the latest snapshot", i)
		}
		if c := a.Latest().ChangesSince(created.Version()); len(c.Services) != 1 || !c.Services[0].Gone {
			t.Fatalf("round %d: changes since the creation are %+v", i, c.Services)
		}
	}
}

func TestSeed16LateReaderStartsAtTheLatest(t *testing.T) {
	a := NewAggregate(nil)
	publishNumbered(a.Open(shardOf("c1")), 50)
	ctx, cancel := context.WithCancel(t.Context())
	var first []uint16
	follow(ctx, a, 0, func(s *Snapshot, c ChangeSet) error {
		if !c.All {
			t.Error("a reader without a cursor was told less than everything")
		}
		first = append(first, portOf(s))
		cancel()
		return nil
	})
	if !slices.Equal(first, []uint16{50}) {
		t.Fatalf("the late reader saw %v, want only the latest, 50", first)
	}
}

func TestSeed58FailingReaderTriesAgainFromItsCursor(t *testing.T) {
	a := NewAggregate(nil)
	w := a.Open(shardOf("c1"))
	publishNumbered(w, 1)
	cursor := a.Latest().Version()
	w.Update(set(ShardKey{}, map[ServiceKey]*Shard{key("b.a", "a"): web("")}))
	w.Update(set(ShardKey{}, map[ServiceKey]*Shard{key("c.a", "a"): web("")}))
	ctx, cancel := context.WithCancel(t.Context())
	var tries []string
	follow(ctx, a, cursor, func(_ *Snapshot, c ChangeSet) error {
		tries = append(tries, fmt.Sprint(c.Services))
		if len(tries) < 3 {
			return errors.New("not yet")
		}
		cancel()
		return nil
	})
	if len(tries) != 3 || tries[0] != tries[2] || !slices.Equal(tries, slices.Repeat(tries[:1], 3)) {
		t.Fatalf("tries were %v, want three times the same two services", tries)
	}
}

func TestClosedWriterChangesNothing(t *testing.T) {
	a := NewAggregate(nil)
	old := a.Open(shardOf("c1"))
	publishNumbered(old, 1)
	next := a.Open(shardOf("c1"))
	publishNumbered(next, 7)
	if got := portOf(a.Latest()); got != 1 {
		t.Fatalf("a writer that stands by published port %d", got)
	}
	if err := old.ReplaceBy(next); err != nil {
		t.Fatal(err)
	}
	before := a.Latest()
	if got := portOf(before); got != 7 {
		t.Fatalf("after the swap the port is %d, want 7", got)
	}
	publishNumbered(old, 1)
	old.Close()
	old.Update(Edit{Services: Delta[ServiceKey, *Shard]{Full: true}})
	if a.Latest() != before {
		t.Fatal("a replaced writer changed the snapshot")
	}
	if err := old.ReplaceBy(next); err == nil {
		t.Fatal("a closed writer was replaced once more")
	}
	next.Close()
	if portOf(a.Latest()) != 7 {
		t.Fatal("closing the writer removed what it said")
	}
}

func TestUpdateWithoutDifferencePublishesNothing(t *testing.T) {
	a := NewAggregate(nil)
	w := a.Open(shardOf("c1"))
	publishNumbered(w, 1)
	before := a.Latest()
	publishNumbered(w, 1)
	if a.Latest() != before {
		t.Fatal("the same contents were published as a new version")
	}
}

// TestVersionsThatNobodyNeedBeToldOfLeaveNoRecord: such as those of workloads
// without an address, of which a cluster may have as many as it likes.
func TestVersionsThatNobodyNeedBeToldOfLeaveNoRecord(t *testing.T) {
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{key("web.a", "a"): web("")}))
	before := s.journal
	for i := range 10 {
		labels := map[string]string{"round": fmt.Sprint(i)}
		next, c := Next(s, Edit{
			Source:    shardOf("c1"),
			Workloads: Delta[WorkloadKey, *Workload]{Set: map[WorkloadKey]*Workload{{Name: "host"}: {Labels: labels}}},
		})
		if next == s || !c.Empty() {
			t.Fatalf("a workload without an address made %+v", c)
		}
		s = next
	}
	if s.journal != before {
		t.Errorf("the journal grew from %+v to %+v", before, s.journal)
	}
}
