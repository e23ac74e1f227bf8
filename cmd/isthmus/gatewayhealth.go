package main

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/probe"
)

// sheets keeps what this hub finds of gateways in the store of record, from where
// every hub reads it.
type sheets struct {
	Hub    string // of several over one store
	Leases config.Leases
}

// Put is part of probe.Store.
func (s sheets) Put(ctx context.Context, sheet probe.Sheet, ttl time.Duration) error {
	o, err := config.NewGatewayHealth(s.Hub, federation.GatewayHealth{Observer: sheet.Observer, Reachable: sheet.Reachable, Since: sheet.Since})
	if err == nil {
		_, err = s.Leases.Register(ctx, *o, ttl)
	}
	return err
}

// Renew is part of probe.Store.
func (s sheets) Renew(ctx context.Context, key probe.SheetKey) error {
	_, err := s.Leases.Renew(ctx, config.GatewayHealthKey(s.Hub, key.Observer, key.Reachable))
	if errors.Is(err, config.ErrNoLease) {
		return probe.ErrNoSheet
	}
	return err
}

// Remove is part of probe.Store.
func (s sheets) Remove(ctx context.Context, key probe.SheetKey) error {
	return s.Leases.Release(ctx, config.GatewayHealthKey(s.Hub, key.Observer, key.Reachable))
}

// probers is how gateways that probe are heard.
type probers struct{ keeper *probe.Keeper }

// Found is part of xds.Probes.
func (p probers) Found(prober string, observer federation.NetworkID, reached map[netip.AddrPort]bool) {
	words := make([]probe.Word, 0, len(reached))
	for gateway, well := range reached {
		words = append(words, probe.Word{Prober: prober, Way: federation.VerdictKey{Observer: observer, Gateway: gateway}, Well: well})
	}
	p.keeper.Hear(words)
}

// Left is part of xds.Probes.
func (p probers) Left(prober string) { p.keeper.Left(prober) }
