package registries_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

// TestR60AChangeDuringTheFirstWriteIsAddedToTheFile: the first write of a large cluster takes long, and something changes while it
// goes on. The file is not written a second time as a whole.
func TestR60AChangeDuringTheFirstWriteIsAddedToTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c1.Mock.db")
	synctest.Test(t, func(t *testing.T) {
		var sink registries.Sink
		var writes atomic.Bool // the next to ask for the time is the write
		s := registries.New(registries.Options{Aggregate: federation.NewAggregate(nil), Dir: filepath.Dir(file), Now: func() time.Time {
			if writes.CompareAndSwap(true, false) {
				sink.Update(set("late", registrytest.Shard(1, 1)))
			}
			return time.Now()
		}})
		s.Attach(cluster("c1", "", func(ctx context.Context, to registries.Sink) error {
			sink = to
			return registrytest.Says(registrytest.Full(1, 3))(ctx, to)
		}))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		writes.Store(true)
		after(time.Second)
		first, err := os.Stat(file)
		if err != nil || writes.Load() {
			t.Fatalf("the first write: %v", err)
		}
		after(time.Second)
		second, err := os.Stat(file)
		data, e := os.ReadFile(file)
		if err != nil || e != nil || !bytes.Contains(data, []byte("late")) {
			t.Errorf("the change is not on disk (%v, %v)", err, e)
		}
		if err == nil && !os.SameFile(first, second) {
			t.Error("the whole file was rewritten")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
