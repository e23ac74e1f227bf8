// Package registries supervises one running registry for each attached cluster:
// start, restart with back-off, hold, replacement, detach, and the last known
// good state on disk. It knows no kind of registry.
package registries

import (
	"context"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/federation"
)

// Registry follows one cluster. Run blocks until the context ends and returns
// an error only for what a retry cannot heal; trouble that may pass is reported by
// Status. Its first Update is full.
type Registry interface {
	Run(ctx context.Context, to Sink) error
}

// Sink takes what a registry says. Update returns after its version is
// published. What comes after Run has returned, or from a registry that was
// replaced or detached, changes nothing.
type Sink interface {
	Update(federation.Edit)
	Status(federation.RegistryStatus)
}

// Active is what a Registry may have beside Run: when its last event came,
// and when it last read its cluster completely. It may be called at any time.
type Active interface {
	Activity() (lastEvent, lastSync time.Time)
}

// Cluster is a cluster to attach.
type Cluster struct {
	ID   federation.ClusterID
	Spec federation.ClusterSpec
	// Owner is the kind of source that attaches it; see Supervisor.Forget. Empty: none.
	Owner string
	// Fingerprint is a content hash of all that Open depends on: another one
	// replaces the running registry. It reveals no secret.
	Fingerprint string
	// Confirmed: the identity is taken from the attachment, not from what was known of the ID.
	Confirmed bool
	// Identified: the UID tells the cluster from all others, so that it is served under
	// one ID only.
	Identified bool
	// Rank is that of the source that names it: of several IDs that lead to one cluster
	// the one of the lowest rank is served.
	Rank int
	// Open makes a new, not yet running registry; it does not block. The identity
	// is that of the cluster as it was known before, zero if it never was: a
	// registry that finds another cluster applies nothing and says so. An error
	// counts as one that a retry may not heal and holds no secret.
	Open func(known federation.ClusterIdentity) (Registry, error)
}

// Metrics counts what the registries do. It must not block.
type Metrics interface {
	RegistryPanicked(federation.ClusterID)
	RegistryRestarted(federation.ClusterID)
	Edit(federation.ClusterID)              // one was published
	Event(federation.ClusterID, time.Time)  // the registry said something
	Synced(federation.ClusterID, time.Time) // a complete list was published
	Unsaved(federation.ClusterID, bool)     // whether its last known good state cannot be written
}

// Options are what a Supervisor works with. Only Aggregate is needed.
type Options struct {
	Aggregate *federation.Aggregate
	Dir       string          // of the last known good states; empty: none are kept
	Attached  <-chan struct{} // closed once every cluster of the start was attached; nil: that is before Run
	Grace     time.Duration   // how long the start waits for a cluster; 0: 10 s
	HoldFor   time.Duration   // how long after a suspicious list a second one proves it; 0: 5 s
	Logger    *slog.Logger
	Metrics   Metrics
	Now       func() time.Time
}

type noMetrics struct{}

func (noMetrics) RegistryPanicked(federation.ClusterID)  {}
func (noMetrics) RegistryRestarted(federation.ClusterID) {}
func (noMetrics) Edit(federation.ClusterID)              {}
func (noMetrics) Unsaved(federation.ClusterID, bool)     {}
func (noMetrics) Event(federation.ClusterID, time.Time)  {}
func (noMetrics) Synced(federation.ClusterID, time.Time) {}

func (o Options) withDefaults() Options {
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.HoldFor == 0 {
		o.HoldFor = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
