package etcd_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
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

// TestR108CheckpointsLeaveTheReserveOfTheDisk: while the disk has no room for a checkpoint beside what changes need,
// changes are made, no checkpoint is begun, and the log says why. With room again it is made.
func TestR108CheckpointsLeaveTheReserveOfTheDisk(t *testing.T) {
	s := opened(t, etcd.Options{})
	var free, later atomic.Int64
	free.Store(etcd.DiskReserve + 1<<20)
	s.SetFree(func() uint64 { return uint64(free.Load()) })
	o := eager()
	counted, log := &counts{}, &refusals{}
	o.Meter, o.CheckpointRecords, o.Logger = counted, 2, slog.New(slog.NewTextHandler(log, nil))
	o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	c := s.Config(o)
	recorder, _ := configtest.Listen(t, c)
	recorder.WaitRevision(t, 0)
	base := int64(0)
	large := strings.Repeat("x", 600<<10)
	waitUntil(t, "a refused checkpoint", func() bool {
		later.Add(int64(time.Hour))
		base = configtest.Must(t, c, configtest.Set(base, configtest.Object("large", fmt.Sprint(base, large))))
		recorder.WaitRevision(t, base)
		return log.count("free 65 MiB in all") > 2 || counted.get(etcd.CountCheckpoints) > 0
	})
	if made, left := counted.get(etcd.CountCheckpoints), staged(t, s); made > 0 || left > 0 {
		t.Errorf("%d checkpoints were made, %d are staged", made, left)
	}
	free.Store(1 << 30)
	waitUntil(t, "a checkpoint", func() bool {
		later.Add(int64(time.Hour))
		base = configtest.Must(t, c, configtest.Set(base, configtest.Object("large", fmt.Sprint(base, large))))
		recorder.WaitRevision(t, base)
		return counted.get(etcd.CountCheckpoints) > 0
	})
}

// refusals are log lines about checkpoints.
type refusals struct {
	mu    sync.Mutex
	lines []string
}

func (r *refusals) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(string(line), "a checkpoint of the configuration could not be made") {
		r.lines = append(r.lines, string(line))
	}
	return len(line), nil
}

func (r *refusals) count(part string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}
