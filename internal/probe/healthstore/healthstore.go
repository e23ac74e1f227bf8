// Package healthstore keeps the health of gateways in the store of record.
package healthstore

import (
	"context"
	"errors"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/probe"
)

// Store keeps what this hub finds of gateways in the store of record, from where
// every hub reads it.
type Store struct {
	Hub    string // of several over one store
	Leases config.Leases
}

// Put is part of probe.Store.
func (s Store) Put(ctx context.Context, health probe.Health, ttl time.Duration) error {
	o, err := config.NewGatewayHealth(s.Hub, federation.GatewayHealth{
		Observer:  health.Observer,
		Reachable: health.Reachable, Since: health.Since,
	})
	if err == nil {
		_, err = s.Leases.Register(ctx, *o, ttl)
	}
	return err
}

// Renew is part of probe.Store.
func (s Store) Renew(ctx context.Context, key probe.HealthKey) error {
	_, err := s.Leases.Renew(ctx, config.GatewayHealthKey(s.Hub, key.Observer, key.Reachable))
	if errors.Is(err, config.ErrNoLease) {
		return probe.ErrNoHealth
	}
	return err
}

// Remove is part of probe.Store.
func (s Store) Remove(ctx context.Context, key probe.HealthKey) error {
	return s.Leases.Release(ctx, config.GatewayHealthKey(s.Hub, key.Observer, key.Reachable))
}
