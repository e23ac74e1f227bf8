package hub

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/retry"
)

const (
	// presenceTTL is how long other hubs count one that was killed.
	presenceTTL = 15 * time.Second
	// presenceRetry is how long to wait after a write that failed.
	presenceRetry = 2 * time.Second
	// goodbye is how long a hub that stops tries to say so.
	goodbye = 500 * time.Millisecond
)

// presence tells the other hubs on the same store of record that this one runs.
// What this hub knows of proxies is then not all that there is to know (R73).
type presence struct {
	hub    string // of several over one store
	leases config.Leases
	views  func() *config.View
	shared bool // other hubs can use the store
	logger *slog.Logger
}

// others is how many other hubs run.
func (p presence) others() int {
	if !p.shared {
		return 0
	}
	return p.views().State.OtherHubs(p.hub)
}

// run keeps the presence until the context ends.
func (p presence) run(ctx context.Context) error {
	if !p.shared {
		return nil
	}
	failed := false
	for ctx.Err() == nil {
		next := presenceTTL / 3
		if err := p.renew(ctx); err != nil && ctx.Err() == nil {
			if next = presenceRetry; !failed {
				p.logger.Warn("other hubs may not know that this one runs: the store does not take its presence", slog.Any("err", err))
			}
			failed = true
		} else {
			failed = false
		}
		retry.Sleep(ctx, next)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	_ = p.leases.Release(ctx, config.HubPresenceKey(p.hub)) // else its time ends
	return nil
}

func (p presence) renew(ctx context.Context) error {
	_, err := p.leases.Renew(ctx, config.HubPresenceKey(p.hub))
	if !errors.Is(err, config.ErrNoLease) {
		return err
	}
	o, err := config.NewHubPresence(p.hub)
	if err == nil {
		_, err = p.leases.Register(ctx, *o, presenceTTL)
	}
	return err
}
