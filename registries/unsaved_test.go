package registries_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

// unsavedMetrics records whether states are on disk.
type unsavedMetrics struct {
	registries.Metrics
	mu   sync.Mutex
	said []bool
}

func (*unsavedMetrics) RegistryPanicked(federation.ClusterID)  {}
func (*unsavedMetrics) RegistryRestarted(federation.ClusterID) {}
func (*unsavedMetrics) Edit(federation.ClusterID)              {}
func (*unsavedMetrics) Event(federation.ClusterID, time.Time)  {}
func (*unsavedMetrics) Synced(federation.ClusterID, time.Time) {}
func (m *unsavedMetrics) Unsaved(_ federation.ClusterID, failing bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, failing)
}

// TestF20StateThatCannotBeSavedIsAProblem: a folder that cannot be written is a problem of
// the cluster, a metric and one line of the log, until the state is on disk. The cluster is
// served.
func TestF20StateThatCannotBeSavedIsAProblem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // in the place of the folder
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		log := &testbed.LogText{}
		counted, snapshots := &unsavedMetrics{}, federation.NewAggregate(nil)
		s := registries.New(registries.Options{Aggregate: snapshots, Dir: dir, Metrics: counted, Logger: slog.New(slog.NewTextHandler(log, nil))})
		s.Attach(cluster("c1", "", registrytest.Says(registrytest.Full(1, 3))))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		after(time.Minute)
		problems := func() (codes []string) {
			for p := range snapshots.Latest().Problems("c1") {
				codes = append(codes, p.Code)
			}
			return codes
		}
		if got := problems(); len(got) != 1 || got[0] != "STATE_NOT_SAVED" {
			t.Errorf("the problems are %v", got)
		}
		if c, _ := snapshots.Latest().Cluster("c1"); c.Status.Phase != federation.Ready {
			t.Errorf("the cluster is %+v", c.Status)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		after(time.Minute)
		if got := problems(); len(got) != 0 {
			t.Errorf("with the folder in order the problems are %v", got)
		}
		if len(counted.said) != 2 || !counted.said[0] || counted.said[1] {
			t.Errorf("the metric was told %v", counted.said)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "the last known good state was not saved"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
	})
}
