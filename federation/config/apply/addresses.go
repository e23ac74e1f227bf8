package apply

import (
	"context"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/retry"
)

// addressPause is how long a store that did not take addresses is left alone.
const addressPause = 5 * time.Second

// Run gives automatic VIPs to services of sources that are not written to, and
// frees those of services that it has seen end, until the context ends; those of
// applied objects come and go with their commit. Other hubs may read other folders:
// a VIP whose service this hub has never known is left alone.
func (e *Engine) Run(ctx context.Context) error {
	before := e.Views.Latest()
	for {
		v := e.Views.Latest()
		failed := len(addresses(v, before)) > 0 && e.commitAddresses(ctx, before) != nil
		if !failed {
			before = v
		}
		if !e.awaitNext(ctx, v, failed) {
			return nil
		}
	}
}

// awaitNext waits for another view, after a failure not for long; false: the
// context has ended.
func (e *Engine) awaitNext(ctx context.Context, v *config.View, failed bool) bool {
	pause := retry.Forever
	if failed {
		pause = addressPause
	}
	return retry.Await(ctx, pause, v.Superseded())
}

// addresses are the allocations that are wanted now, and those whose services have
// ended since the view before.
func addresses(v, before *config.View) []config.Change {
	if !v.Synced() {
		return nil
	}
	changes := slices.DeleteFunc(v.State.MissingAllocations(), func(c config.Change) bool { return c.Object == nil })
	if before.Synced() {
		changes = append(changes, v.State.EndedSince(before.State)...)
	}
	return changes
}

// commitAddresses commits them. Trouble passes: it is tried again.
func (e *Engine) commitAddresses(ctx context.Context, before *config.View) error {
	select {
	case <-e.turn:
		defer func() { e.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	on := base{e.Views.Latest()}
	wanted := addresses(on.View, before)
	if len(wanted) == 0 {
		return nil
	}
	note := config.Note{Time: e.Now().UTC(), Message: "automatic addresses of services that are not applied"}
	revision, err := e.Log.Commit(ctx, config.Commit{Base: on.Revision(), Changes: wanted, Note: note})
	if err == nil {
		e.await(ctx, func(v base) bool { return v.Revision() >= revision })
	}
	return err
}
