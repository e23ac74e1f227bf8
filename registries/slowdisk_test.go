package registries_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

const patience = 30 * time.Second

// TestR95ASlowDiskHoldsUpNoOtherCluster: while the state of a cluster is written and the disk does not answer, that
// cluster is detached, refused and attached again, and others are attached. What was saved of it before is not
// served then.
func TestR95ASlowDiskHoldsUpNoOtherCluster(t *testing.T) {
	dir := t.TempDir()
	var armed atomic.Bool // the next to ask for the time is the write
	release, writing := make(chan struct{}), make(chan struct{})
	aggregate := federation.NewAggregate(nil)
	s := registries.New(registries.Options{Aggregate: aggregate, Dir: dir, Grace: time.Hour, Now: func() time.Time {
		if armed.CompareAndSwap(true, false) {
			close(writing)
			<-release
		}
		return time.Now()
	}})
	sinks := make(chan registries.Sink, 1)
	s.Attach(cluster("c1", "", func(ctx context.Context, to registries.Sink) error {
		sinks <- to
		return registrytest.Says(registrytest.Full(1, 3))(ctx, to)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	file := filepath.Join(dir, "c1.Mock.db")
	testbed.WaitFor(t, patience, "the state to be saved", func() error { _, err := os.Stat(file); return err })
	sink := <-sinks
	testbed.WaitFor(t, patience, "a write to be held up", func() error {
		sink.Update(set("late", registrytest.Shard(1, 1)))
		sink.Update(gone("late"))
		armed.Store(true)
		missed := time.NewTimer(2 * time.Second)
		defer missed.Stop()
		select {
		case <-writing:
			return nil
		case <-missed.C:
		}
		if armed.Swap(false) {
			return errors.New("the changes were written before it was to be held up")
		}
		return nil
	})
	<-writing

	carriedOut := make(chan struct{})
	go func() {
		defer close(carriedOut)
		s.Detach("c1")
		s.Refuse("c1", federation.ClusterSpec{Provider: federation.Mock}, "users[0].user.exec: is refused")
		s.Forget("object")
		s.Attach(cluster("c2", "", registrytest.Says(registrytest.Full(2, 2))))
	}()
	phase := func(id federation.ClusterID, want federation.Phase) {
		t.Helper()
		testbed.WaitFor(t, patience, string(id)+" to be "+string(want), func() error {
			switch c, shown := aggregate.Latest().Cluster(id); {
			case !shown:
				return errors.New("it is not shown")
			case c.Status.Phase != want:
				return fmt.Errorf("it is %s: %s", c.Status.Phase, c.Status.Message)
			}
			return nil
		})
	}
	phase("c2", federation.Ready)
	<-carriedOut
	phase("c1", federation.Pending)
	close(release)
	phase("c1", federation.Failed)
	if n := aggregate.Latest().Services().Len(); n != 2 {
		t.Errorf("%d services are served, want the 2 of c2", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the state of a cluster that was detached is on disk: %v", err)
	}
}
