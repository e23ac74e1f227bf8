package clusters

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/hub/kinds"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
)

// storedRegistry opens the kept credentials of a cluster when it runs.
type storedRegistry struct {
	objectClusters
	kind    provider.Kind
	config  kinds.Cluster
	version string
	known   federation.Identity
	inner   atomic.Pointer[registries.Registry]
}

// Run is part of registries.Registry. While the credentials cannot be had, what
// was known of the cluster stays.
func (s *storedRegistry) Run(ctx context.Context, to registries.Sink) error {
	pauses := retry.Backoff{First: time.Second, Longest: 30 * time.Second}
	for {
		credentials, err := s.vault.Open(ctx, s.config.ID, s.version)
		if err == nil {
			return s.follow(ctx, credentials, to)
		}
		if ctx.Err() != nil {
			return nil
		}
		s.Logger.Error("the credentials of a cluster cannot be used", "cluster", s.config.ID, "err", err)
		s.metrics.Unusable(s.config.ID)
		to.Status(federation.RegistryStatus{Phase: federation.Stale, Message: fmt.Sprintf("%v; or give it others: isthmus cluster rotate %s", err, s.config.ID)})
		if !pauses.Wait(ctx) {
			return nil
		}
	}
}

func (s *storedRegistry) follow(ctx context.Context, credentials attach.Credentials, to registries.Sink) error {
	known := s.known
	if credentials.UID != "" {
		known.UID = credentials.UID // the record of it; the other one is a cache
	}
	of := s.cluster(s.config, known)
	of.Kept = &credentials
	inner, err := s.kind.Open(of)
	if err != nil {
		return err
	}
	s.inner.Store(&inner)
	if credentials.UID != "" || !s.kind.Identified {
		return inner.Run(ctx, to)
	}
	return learning(ctx, inner, to, s.learn)
}

// learn has it kept with the credentials who the cluster is: of credentials of an
// earlier version of the hub, and after an operator confirmed another cluster.
func (s *storedRegistry) learn(ctx context.Context, uid string) {
	pauses := retry.Backoff{First: time.Second, Longest: 30 * time.Second}
	pauses.Until(ctx, func() error { return s.vault.Learn(ctx, s.config.ID, uid) }, func(err error, _ time.Duration) {
		s.Logger.Warn("who a cluster is cannot be kept with its credentials", "cluster", s.config.ID, "err", err)
	})
}

// Activity is part of registries.Active.
func (s *storedRegistry) Activity() (lastEvent, lastSync time.Time) {
	return activityOf(&s.inner)
}
