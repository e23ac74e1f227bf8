package hub

import (
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// readiness answers /readyz.
type readiness struct {
	snapshots interface{ Latest() *federation.Snapshot }
	synced    <-chan struct{}
	draining  chan struct{}
	warnings  func() []string // that do not keep the hub from serving
}

// drain makes the hub not ready for good.
func (r *readiness) drain() { close(r.draining) }

func (r *readiness) check() (bool, []string) {
	select {
	case <-r.draining:
		return false, []string{"the hub is shutting down"}
	default:
	}
	select {
	case <-r.synced:
		return true, r.warnings()
	default:
	}
	reasons := []string{"the hub waits for its clusters and its configuration"}
	for c := range r.snapshots.Latest().Clusters() {
		if c.Status.Phase != federation.Ready {
			reasons = append(reasons, fmt.Sprintf("cluster %s is %s: %s", c.ID, c.Status.Phase, c.Status.Message))
		}
	}
	return false, reasons
}
