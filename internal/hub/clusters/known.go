package clusters

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/registries"
)

// forgetWithin is how long the store may take to forget a cluster.
const forgetWithin = 5 * time.Second

// Record is one value of the store; etcd.Shared is one.
type Record interface {
	Load(ctx context.Context) (value []byte, revision int64, err error)
	Save(ctx context.Context, value []byte, revision int64) (saved bool, err error)
}

// knownClusters keeps in the store of record who the clusters of the config file
// and of the watched folder are, since the data folder is a cache (R08). A Cluster
// object has it beside its credentials. The value is the UID; empty: not known.
type knownClusters func(federation.ClusterID) Record

// forget has the cluster learnt anew: an operator confirms that it is another one.
func (k knownClusters) forget(ctx context.Context, id federation.ClusterID) error {
	if k == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forgetWithin)
	defer cancel()
	of := k(id)
	value, revision, err := of.Load(ctx)
	if err != nil || len(value) == 0 {
		return err
	}
	_, err = of.Save(ctx, nil, revision)
	return err
}

// knownRegistry follows a cluster of a file once the store has said who it is.
type knownRegistry struct {
	id     federation.ClusterID
	of     Record
	cache  federation.Identity // as the data folder has it
	open   opener
	logger *slog.Logger
	inner  atomic.Pointer[registries.Registry]
}

// remember has the registry of a cluster find out who it is from the store, and
// keep it there.
func (m maker) remember(id federation.ClusterID, open opener) opener {
	if m.known == nil {
		return open
	}
	return func(cache federation.Identity) (registries.Registry, error) {
		return &knownRegistry{id: id, of: m.known(id), cache: cache, open: open, logger: m.Logger}, nil
	}
}

// Run is part of registries.Registry.
func (k *knownRegistry) Run(ctx context.Context, to registries.Sink) error {
	var recorded string
	said := k.retry(ctx, func() error {
		value, _, err := k.of.Load(ctx)
		recorded = string(value)
		if err != nil {
			to.Status(federation.RegistryStatus{Phase: federation.Stale, Message: fmt.Sprintf("who the cluster is cannot be read from the store: %v", err)})
		}
		return err
	})
	if !said {
		return nil
	}
	known := k.cache
	if recorded != "" {
		known.UID = recorded
	}
	inner, err := k.open(known)
	if err != nil {
		return err
	}
	k.inner.Store(&inner)
	if recorded != "" {
		return inner.Run(ctx, to)
	}
	return learning(ctx, inner, to, k.learn)
}

// learn keeps who the cluster is.
func (k *knownRegistry) learn(ctx context.Context, uid string) {
	k.retry(ctx, func() error {
		value, revision, err := k.of.Load(ctx)
		if err != nil || len(value) > 0 {
			return err
		}
		_, err = k.of.Save(ctx, []byte(uid), revision) // who was faster read the same cluster
		return err
	})
}

// retry repeats what the store does not do, and tells whether it was done before
// the context ended.
func (k *knownRegistry) retry(ctx context.Context, what func() error) (done bool) {
	pauses := retry.Backoff{First: time.Second, Longest: 30 * time.Second}
	return pauses.Until(ctx, what, func(err error, pause time.Duration) {
		k.logger.Warn("who a cluster is cannot be kept in the store", slog.String("cluster", string(k.id)), slog.Any("err", err), slog.Duration("retryIn", pause))
	})
}

// Activity is part of registries.Active.
func (k *knownRegistry) Activity() (lastEvent, lastSync time.Time) {
	return activityOf(&k.inner)
}

// activityOf is that of a registry which may not be made yet.
func activityOf(of *atomic.Pointer[registries.Registry]) (lastEvent, lastSync time.Time) {
	if inner := of.Load(); inner != nil {
		if active, ok := (*inner).(registries.Active); ok {
			return active.Activity()
		}
	}
	return time.Time{}, time.Time{}
}
