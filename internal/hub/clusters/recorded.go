package clusters

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/registries"
)

// record is what the store keeps of one cluster.
type record struct {
	// read tells who the cluster is, or nothing where that is not recorded, and what makes
	// its registry.
	read func(context.Context) (uid string, open opener, err error)
	// unread says for people that the record cannot be read.
	unread func(error) string
	// learn records who the cluster is, unless that is recorded; nil: it need not be.
	learn func(ctx context.Context, uid string) error
}

// recorded is the registry of a cluster whose record is read when it runs.
type recorded struct {
	record
	id     federation.ClusterID
	cache  federation.ClusterIdentity // as the data folder has it
	logger *slog.Logger
	inner  atomic.Pointer[registries.Registry]
}

func (r record) opener(id federation.ClusterID, logger *slog.Logger) opener {
	return func(cache federation.ClusterIdentity) (registries.Registry, error) {
		return &recorded{record: r, id: id, cache: cache, logger: logger}, nil
	}
}

// Run is part of registries.Registry. Until the record was read, what was known of the
// cluster stays.
func (r *recorded) Run(ctx context.Context, to registries.Sink) error {
	var recorded string
	var open opener
	read := r.retry(ctx, r.logger.Error, "the record of a cluster cannot be used", func() (err error) {
		recorded, open, err = r.read(ctx)
		if err != nil && ctx.Err() == nil {
			to.Status(federation.RegistryStatus{Phase: federation.Stale, Message: r.unread(err)})
		}
		return err
	})
	if !read {
		return nil
	}
	known := r.cache
	if recorded != "" {
		known.UID = recorded
	}
	inner, err := open(known)
	if err != nil {
		return err
	}
	r.inner.Store(&inner)
	if recorded != "" || r.learn == nil {
		return inner.Run(ctx, to)
	}
	return learning(ctx, inner, to, func(ctx context.Context, uid string) {
		r.retry(ctx, r.logger.Warn, "who a cluster is cannot be recorded", func() error { return r.learn(ctx, uid) })
	})
}

// retry repeats what the store does not do, and reports whether it was done before the
// context ended.
func (r *recorded) retry(ctx context.Context, log func(string, ...any), message string, what func() error) (done bool) {
	pauses := retry.Backoff{First: time.Second, Longest: 30 * time.Second}
	return pauses.Until(ctx, what, func(err error, pause time.Duration) {
		log(message, "cluster", r.id, "err", err, "retryIn", pause)
	})
}

// Activity is part of registries.Active.
func (r *recorded) Activity() (lastEvent, lastSync time.Time) {
	if inner := r.inner.Load(); inner != nil {
		if active, ok := (*inner).(registries.Active); ok {
			return active.Activity()
		}
	}
	return time.Time{}, time.Time{}
}
