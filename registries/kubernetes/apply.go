package kubernetes

import (
	"context"
	"time"
)

// event is what the mechanism and the gate of listwatch tell the applier: listed, changed,
// followed or probed.
type event any

type (
	// listed is a complete list of a kind, from a proven server.
	listed struct {
		kind  kind
		items []object
		epoch uint64
	}
	// changed is an object that is there now, or the name of one that is gone.
	changed struct {
		kind kind
		set  object
		gone key
	}
	// followed reports that a kind is watched, or why not.
	followed struct {
		kind kind
		err  error
	}
	// probed is the end of a round of the gate's probe.
	probed struct {
		uid string
		err error
	}
)

// mostEvents bounds the events of one edit.
const mostEvents = 4096

// applier applies the events in their order and passes on what they change.
type applier struct {
	*Registry
	to     Sink
	model  *model
	link   link
	epochs [kinds]uint64 // in which each kind was listed last
	full   uint64        // epoch of the last full edit
	relist bool          // a list within the epoch changed something
}

func newFollower(r *Registry, to Sink) *applier {
	return &applier{Registry: r, to: to, model: r.newModel(), link: link{explain: r.options.Explain}}
}

// run takes events until the context ends. Events that wait already become one
// edit; nothing waits for more. What becomes a problem by lasting is looked at
// when its time has come.
func (f *applier) run(ctx context.Context, events <-chan event) {
	due := time.NewTimer(podPatience)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			f.take(e)
		case <-due.C:
			f.model.overdue()
		}
		for n := 1; n < mostEvents && f.takeWaiting(events); n++ {
		}
		if ctx.Err() != nil {
			return
		}
		f.flush()
		if at, ok := f.model.absences.nextDue(); ok {
			due.Reset(time.Until(at))
		} else {
			due.Stop()
		}
	}
}

func (f *applier) takeWaiting(events <-chan event) bool {
	select {
	case e := <-events:
		f.take(e)
		return true
	default:
		return false
	}
}

func (f *applier) take(e event) {
	switch e := e.(type) {
	case listed:
		afresh := e.epoch != f.epochs[e.kind]
		if f.model.replace(e.kind, e.items, afresh) {
			f.relist = true
		}
		f.shares[e.kind].Replaced(f.model.used[e.kind])
		f.epochs[e.kind] = e.epoch
		f.link.trouble[e.kind] = nil
		f.log.Debug("listed", "kind", int(e.kind), "objects", len(e.items))
	case changed:
		f.lastEvent.Store(time.Now().UnixNano())
		if e.set != nil {
			f.model.set(e.set)
			f.shares[e.kind].Took(e.set.size(), f.model.used[e.kind])
		} else {
			f.model.remove(e.kind, e.gone)
			f.shares[e.kind].Holds(f.model.used[e.kind])
		}
	case followed:
		f.link.follow(e)
	case probed:
		f.link.probed(e.err)
		if e.uid != "" && f.model.cluster.UID == "" {
			f.model.cluster.UID = e.uid
		}
		if f.link.synced && f.link.follows() {
			f.lastSync.Store(time.Now().UnixNano())
		}
	}
}

// flush says what changed. While lists of different epochs are mixed, or what
// answers is not what was followed, nothing is sent: stale beats partial.
func (f *applier) flush() {
	if f.whole() && !f.link.frozen() {
		full := f.epochs[0] > f.full || f.relist
		if edit, ok := f.model.edit(full); ok {
			f.to.Update(edit)
		}
		f.full, f.relist = f.epochs[0], false
		if !f.link.synced {
			f.link.synced = true
			f.lastSync.Store(time.Now().UnixNano())
		}
	}
	f.budget.Show()
	if status, ok := f.link.status(); ok {
		f.to.Status(status)
	}
}

// whole reports whether every kind was listed in the same epoch.
func (f *applier) whole() bool {
	for _, epoch := range f.epochs {
		if epoch == 0 || epoch != f.epochs[0] {
			return false
		}
	}
	return true
}
