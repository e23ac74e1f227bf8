package hub

import (
	"context"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/jwks"
)

const keysPatience = 10 * time.Second

// readiness answers /readyz.
type readiness struct {
	snapshots interface{ Latest() *federation.Snapshot }
	clusters  <-chan struct{} // closed when what the clusters had at the start is there
	views     *config.Aggregate
	synced    chan struct{} // closed when clusters and configuration are there
	draining  chan struct{}
	warnings  func() []string // that do not keep the hub from serving
}

func newReadiness(snapshots *federation.Aggregate, clusters <-chan struct{}, views *config.Aggregate, warnings func() []string) *readiness {
	return &readiness{
		snapshots: snapshots, clusters: clusters, views: views, synced: make(chan struct{}), draining: make(chan struct{}), warnings: warnings,
	}
}

// run waits for the clusters and the configuration.
func (r *readiness) run(ctx context.Context) error {
	if _, err := r.views.WaitSynced(ctx); err != nil {
		return nil // the hub ends
	}
	select {
	case <-r.clusters:
		r.waitForKeys(ctx)
		close(r.synced)
	case <-ctx.Done():
	}
	return nil
}

// waitForKeys waits until the hub tried to fetch all keys of tokens: a hub that starts does not refuse
// tokens that it accepted before. It does not wait long, because a server may be away.
func (r *readiness) waitForKeys(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keysPatience)
	defer cancel()
	for ctx.Err() == nil {
		s := r.snapshots.Latest()
		if jwks.Tried(s) {
			return
		}
		select {
		case <-s.Superseded():
		case <-ctx.Done():
		}
	}
}

// drain makes the hub not ready for good.
func (r *readiness) drain() { close(r.draining) }

// Ready is part of graph.Start: queries wait for the same as streams of proxies.
func (r *readiness) Ready() <-chan struct{} { return r.synced }

// Check is what /readyz answers.
func (r *readiness) Check() (bool, []string) {
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
