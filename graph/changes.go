package graph

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
	"isthmus.dev/isthmus/internal/retry"
)

type subscription struct{ *resolver }

// Changes follows the snapshots until the context ends: it pulls, so that a
// reader that is slow or that comes back gets what is left of all changes.
func (s subscription) Changes(ctx context.Context, after *string, filter *model.ChangeFilter) (<-chan model.Change, error) {
	events := make(chan model.Change)
	f := &changeFeed{resolver: s.resolver, send: func(change model.Change) bool {
		select {
		case events <- change:
			return true
		case <-ctx.Done():
			return false
		}
	}}
	go func() {
		defer close(events)
		defer func() {
			if cause := recover(); cause != nil {
				transport.EndWith(ctx, fmt.Errorf("following changes: panic: %v\n%s", cause, debug.Stack()))
			}
		}()
		f.run(ctx, value(after), newFollowing(filter))
	}()
	return events, nil
}

// changeFeed is one subscription to changes.
type changeFeed struct {
	*resolver
	send   func(model.Change) (more bool)
	has    subscriptionState // what the subscriber has
	cursor string            // of that
	fleet  *fleet.Value
	// streams are those of proxies that the subscriber has, where it follows them.
	streams map[fleet.Key]*fleet.Proxy
	again   time.Time // when statuses may be looked at again; zero: when something changes
}

func (f *changeFeed) run(ctx context.Context, after string, what following) {
	if what.status {
		defer f.statuses.follow(what.scope())()
	}
	if !f.resume(after, what) && !f.resync(what) {
		return
	}
	for {
		if !f.wait(ctx, what) || !f.step(what) || !retry.Sleep(ctx, f.Pace) {
			return
		}
	}
}

// wait returns when there may be something to tell; more is false when the context
// ends first.
func (f *changeFeed) wait(ctx context.Context, what following) (more bool) {
	var fleetMoved <-chan struct{}
	if what.status || what.proxies {
		fleetMoved = f.fleet.Superseded()
	}
	due := retry.Forever
	if !f.again.IsZero() {
		due, fleetMoved = time.Until(f.again), nil
	}
	return retry.Await(ctx, due, f.has.snapshot.Superseded(), fleetMoved)
}

// resume goes on behind the cursor, if it is known or nothing has changed since.
func (f *changeFeed) resume(after string, what following) bool {
	if after == "" || what.proxies {
		return false
	}
	f.cursor, f.fleet = after, f.Fleet.Latest()
	if what.status {
		f.again = time.Now() // statuses may have changed meanwhile
	}
	if has, known := f.subscriptions.get(after, what); known {
		f.has = has
		return true
	}
	if _, ours := model.CursorKey(changesList, after); !ours {
		return false
	}
	f.has = f.whole(what)
	for range f.has.pages() {
	}
	if !hasContent(after, what.content(f.Config.Epoch, f.has.digest)) {
		return false
	}
	f.subscriptions.keep(after, f.has)
	return true
}

func (f *changeFeed) whole(what following) subscriptionState {
	return subscriptionState{following: what, snapshot: f.Snapshots.Latest(), show: f.cluster}
}

// resync sends the whole state.
func (f *changeFeed) resync(what following) (more bool) {
	f.fleet = f.Fleet.Latest()
	f.has = f.whole(what)
	if what.status {
		f.again = f.statuses.look()
		f.has.statusAt = f.statuses.now()
	}
	if what.proxies {
		f.streams, f.has.streams = map[fleet.Key]*fleet.Proxy{}, f.fleet
		for of := range f.has.connected() {
			f.streams[of.Key()] = of
		}
	}
	begun := f.now()
	for change, last := range f.has.pages() {
		if change.At.IsZero() { // of a snapshot that no Aggregate published
			change.At = begun
		}
		if last {
			f.name(&change)
		}
		if !f.send(change) {
			return false
		}
	}
	f.has.streams = nil
	return true
}

// step sends what changed since what the subscriber has.
func (f *changeFeed) step(what following) (more bool) {
	next, change, ok := f.has.next(f.Snapshots.Latest())
	if !ok {
		return f.resync(what)
	}
	before := f.fleet
	f.fleet = f.Fleet.Latest()
	if what.proxies {
		change.Proxies = f.nextStreams(before, next)
	}
	objects := len(change.ConfigObjects)
	if what.status {
		f.again = f.statuses.look()
		next.statusAt = f.statuses.tell(&change, next)
	}
	if len(change.Proxies) > 0 || len(change.ConfigObjects) > objects || change.At.IsZero() {
		change.At = f.now() // more than the snapshot changed
	}
	f.has = next
	if isEmpty(change) {
		f.subscriptions.keep(f.cursor, f.has)
		return true
	}
	f.name(&change)
	return f.send(change)
}

// now is the moment of an event, as the hub shows times.
func (f *changeFeed) now() time.Time { return f.Now().UTC() }

// name gives the change the cursor of what the subscriber has with it.
func (f *changeFeed) name(change *model.Change) {
	cursor := f.subscriptions.cursor(f.has, f.Config.Epoch)
	f.subscriptions.keep(cursor, f.has)
	f.cursor, change.Cursor = cursor, &cursor
}
