package mesh

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

// Presence tells the other hubs on the same store of record that this one runs.
// What this hub knows of proxies is then not all that there is to know (R73).
type Presence struct {
	Hub    string // of several over one store
	Leases config.Leases
	Views  func() *config.View
	Shared bool // other hubs can use the store
	Logger *slog.Logger
}

// others is how many other hubs run.
func (p Presence) others() int {
	if !p.Shared {
		return 0
	}
	return p.Views().State.OtherHubs(p.Hub)
}

// Run keeps the presence until the context ends.
func (p Presence) Run(ctx context.Context) error {
	if !p.Shared {
		return nil
	}
	failed := false
	for ctx.Err() == nil {
		next := presenceTTL / 3
		if err := p.renew(ctx); err != nil && ctx.Err() == nil {
			next = presenceRetry
			if !failed {
				p.Logger.Warn("other hubs may not know that this one runs: its presence cannot be stored", slog.Any("err", err))
			}
			failed = true
		} else {
			failed = false
		}
		retry.Sleep(ctx, next)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	_ = p.Leases.Release(ctx, config.HubPresenceKey(p.Hub)) // else its time ends
	return nil
}

func (p Presence) renew(ctx context.Context) error {
	_, err := p.Leases.Renew(ctx, config.HubPresenceKey(p.Hub))
	if !errors.Is(err, config.ErrNoLease) {
		return err
	}
	o, err := config.NewHubPresence(p.Hub)
	if err == nil {
		_, err = p.Leases.Register(ctx, *o, presenceTTL)
	}
	return err
}
