package etcd_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// TestR11FailedCheckpointLeavesNothingAndStopsNobody: while no checkpoint can be
// made, changes are seen, what is staged is collected, and the store is well.
func TestR11FailedCheckpointLeavesNothingAndStopsNobody(t *testing.T) {
	s := opened(t, etcd.Options{})
	writer := s.Config(patient())
	o := eager()
	counted := &counts{}
	var later atomic.Int64
	o.Meter, o.CheckpointRecords = counted, 2
	o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	reader := s.Config(o)
	var tries atomic.Int64
	var slow atomic.Bool
	slow.Store(true)
	reader.FailAt("publish", func() error {
		tries.Add(1)
		if slow.Load() {
			return context.DeadlineExceeded
		}
		return nil
	})
	recorder, _ := configtest.Listen(t, reader)
	recorder.WaitRevision(t, 0)
	base := int64(0)
	for tries.Load() < 5 {
		base = configtest.Must(t, writer, configtest.Set(base, configtest.Object("a", base)))
		seen := recorder.WaitRevision(t, base)
		if codes := seen.Codes(); codes != "" {
			t.Fatalf("trouble %s after %d tries", codes, tries.Load())
		}
		waitUntil(t, "what failed to be removed", func() bool { return staged(t, s) == 0 })
	}
	if n := tries.Load(); n > base+20 {
		t.Errorf("%d tries for %d revisions", n, base)
	}
	// Somebody else's orphan is still collected.
	other := s.Config(patient())
	other.StopAt("publish", 1, context.Canceled)
	if _, err := other.Commit(t.Context(), configtest.Set(base, configtest.Object("a", "never"))); err == nil {
		t.Fatal("the commit is not cut off")
	}
	waitUntil(t, "the orphan to be collected", func() bool {
		later.Add(int64(time.Minute))
		return counted.get(etcd.CountOrphans) > 0
	})
	slow.Store(false)
	waitUntil(t, "a checkpoint once the store is fast again", func() bool { return counted.get(etcd.CountCheckpoints) > 0 })
}

// TestR11HangingCheckpointHoldsNobodyUp: while a checkpoint hangs in the middle of its
// write, changes are made and followed, nothing more is staged, and orphans are
// collected. Once it ends, checkpoints are made again.
func TestR11HangingCheckpointHoldsNobodyUp(t *testing.T) {
	s := opened(t, etcd.Options{})
	writer := s.Config(patient())
	o := eager()
	counted := &counts{}
	var later, hanging atomic.Int64
	o.Meter, o.CheckpointRecords = counted, 2
	o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	reader := s.Config(o)
	end := make(chan struct{})
	reader.FailAt("publish", func() error {
		hanging.Add(1)
		<-end
		return nil
	})
	recorder, _ := configtest.Listen(t, reader)
	release := sync.OnceFunc(func() { close(end) })
	defer release() // before the watcher is waited for
	recorder.WaitRevision(t, 0)
	base := int64(0)
	commit := func() {
		t.Helper()
		base = configtest.Must(t, writer, configtest.Set(base, configtest.Object("a", base)))
		if codes := recorder.WaitRevision(t, base).Codes(); codes != "" {
			t.Fatalf("trouble %s at revision %d", codes, base)
		}
	}
	for hanging.Load() == 0 {
		commit()
	}
	for range 10 { // each of which asks for a checkpoint
		commit()
	}
	if tries, left := hanging.Load(), staged(t, s); tries != 1 || left != 1 {
		t.Errorf("%d checkpoints were begun, and %d transactions are staged, want 1 and 1", tries, left)
	}
	other := s.Config(patient())
	other.StopAt("publish", 1, context.Canceled)
	if _, err := other.Commit(t.Context(), configtest.Set(base, configtest.Object("a", "never"))); err == nil {
		t.Fatal("the commit is not cut off")
	}
	// A checkpoint that hangs for this long counts as an orphan and is made again.
	waitUntil(t, "the orphans to be collected", func() bool {
		later.Add(int64(time.Minute))
		return staged(t, s) == 0
	})
	commit()
	release()
	waitUntil(t, "a checkpoint once none hangs", func() bool {
		later.Add(int64(time.Minute))
		commit()
		return counted.get(etcd.CountCheckpoints) > 0
	})
}
