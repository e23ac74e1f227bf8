package registries

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// instance is one configuration of a member's registry, however often it is
// started. All fields but those of the first line are guarded by member.mu.
type instance struct {
	member  *member
	cluster Cluster
	writer  *federation.Writer
	kick    wake.Signal // ends a pause

	registry  Registry
	hold      *hold
	synced    bool // read everything at least once
	stopped   bool
	foreign   bool // another cluster answers: it waits for a confirmation
	duplicate bool // the cluster is served under another ID
	// confirmed: an operator accepts whatever the cluster reports next.
	confirmed bool
	attempt   *attempt           // the latest
	cancel    context.CancelFunc // ends run
}

// errEnded is the error of a registry that ended without being told to.
var errEnded = errors.New("the registry stopped without an error")

var errPanicked = errors.New("the registry's code panicked; the log has the stack")

// run starts the registry again and again until it is stopped.
func (i *instance) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.member.load()
	i.member.mu.Lock()
	i.cancel = cancel
	stopped := i.stopped
	i.member.mu.Unlock()
	pauses := &retry.Backoff{First: time.Second, Longest: time.Minute}
	for !stopped && ctx.Err() == nil {
		r := &attempt{instance: i}
		err := r.run(ctx)
		if ctx.Err() != nil {
			return
		}
		retry.Await(ctx, r.ended(err, pauses), i.kick)
	}
}

// stop ends the instance without waiting: nothing that it says from now on
// changes anything. The caller holds member.mu.
func (i *instance) stop() {
	i.stopped = true
	i.writer.Close()
	if i.cancel != nil {
		i.cancel()
	}
}

// attempt is one start of an instance's registry, and its Sink.
type attempt struct {
	instance *instance
	synced   bool // its first full edit was applied
	over     bool // what it reports is ignored
	cancel   context.CancelFunc
}

func (r *attempt) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			m := r.instance.member
			m.options.Logger.Error("a registry panicked", "cluster", m.shard.Cluster, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			m.options.Metrics.RegistryPanicked(m.shard.Cluster)
			err = errPanicked
		}
	}()
	registry, err := r.open(cancel)
	if err != nil {
		return err
	}
	return registry.Run(ctx, r)
}

func (r *attempt) open(cancel context.CancelFunc) (Registry, error) {
	m := r.instance.member
	m.mu.Lock()
	r.cancel = cancel
	r.instance.attempt = r
	known := m.known.identity()
	if r.instance.confirmed {
		known = federation.ClusterIdentity{}
	}
	m.mu.Unlock()
	registry, err := r.instance.cluster.Open(known)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.instance.registry = registry
	if r.instance == m.current {
		m.report(r, federation.RegistryStatus{Phase: federation.Syncing})
	}
	return registry, nil
}

// ended handles the end of the registry and says how long to wait before it is
// started again.
func (r *attempt) ended(err error, pauses *retry.Backoff) time.Duration {
	m := r.instance.member
	m.mu.Lock()
	defer m.mu.Unlock()
	heldBack := r.over
	r.over = true
	if r.instance.stopped {
		return 0
	}
	if r.synced {
		pauses.Reset()
	}
	if r.instance.duplicate {
		r.instance.duplicate = false
		return duplicatePause
	}
	if heldBack {
		return r.instance.hold.rest(m.options.Now(), m.options.HoldFor)
	}
	if err == nil {
		err = errEnded
	}
	pause := pauses.Next()
	m.options.Metrics.RegistryRestarted(m.shard.Cluster)
	m.options.Logger.Error("a registry failed", "cluster", m.shard.Cluster, "provider", m.shard.Provider, "err", err, "retryIn", pause)
	m.report(r, federation.RegistryStatus{Phase: federation.Failed, Message: err.Error()})
	return pause
}
