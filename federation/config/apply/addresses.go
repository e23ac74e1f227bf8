package apply

import (
	"context"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation/config"
)

// addressPause is how long a store that did not take addresses is left alone.
const addressPause = 5 * time.Second

// Run gives automatic VIPs to services of sources that are not written to, until
// the context ends; those of applied objects come with their commit. It takes
// none away: that, too, is for the next commit.
func (e *Engine) Run(ctx context.Context) error {
	for {
		v := e.Views.Latest()
		failed := v.Synced() && len(wantedAddresses(v)) > 0 && e.giveAddresses(ctx) != nil
		if !e.awaitNext(ctx, v, failed) {
			return nil
		}
	}
}

// awaitNext waits for another view, after a failure not for long; false: the
// context has ended.
func (e *Engine) awaitNext(ctx context.Context, v *config.View, failed bool) bool {
	var pause <-chan time.Time
	if failed {
		timer := time.NewTimer(addressPause)
		defer timer.Stop()
		pause = timer.C
	}
	select {
	case <-v.Superseded():
	case <-pause:
	case <-ctx.Done():
		return false
	}
	return true
}

func wantedAddresses(v *config.View) []config.Change {
	return slices.DeleteFunc(v.State.MissingAllocations(), func(c config.Change) bool { return c.Object == nil })
}

// giveAddresses commits what is wanted now. Trouble passes: it is tried again.
func (e *Engine) giveAddresses(ctx context.Context) error {
	select {
	case <-e.turn:
		defer func() { e.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	on := base{e.Views.Latest()}
	wanted := wantedAddresses(on.View)
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
