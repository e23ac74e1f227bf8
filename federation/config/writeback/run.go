package writeback

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/retry"
)

// job is one status that is to be written.
type job struct {
	at      ref
	r       record
	patch   map[string]any
	removes bool // nothing follows the object any more
}

// Run writes until the context ends.
func (w *Writer) Run(ctx context.Context, parts Parts) error {
	w.parts = parts
	defer func() { w.follow = w.follow.end() }()
	for ctx.Err() == nil {
		view, snapshot, proxies := parts.Views.Latest(), w.o.Snapshots.Latest(), parts.Proxies.Changed()
		pause := w.round(ctx)
		if !retry.Sleep(ctx, w.o.Pace) || len(w.left) > 0 {
			continue
		}
		again, stop := over(pause)
		select {
		case <-ctx.Done():
		case <-view.Superseded():
		case <-snapshot.Superseded():
		case <-proxies:
		case <-w.o.Leader.Changed():
			w.all()
		case <-w.wake:
		case <-again:
		}
		stop()
	}
	return nil
}

// over receives once the pause is over, or never if it is 0. The caller has to stop it.
func over(pause time.Duration) (over <-chan time.Time, stop func()) {
	if pause == 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(pause)
	return timer.C, func() { timer.Stop() }
}

// all has all objects looked at.
func (w *Writer) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = slices.Collect(maps.Keys(w.records))
}

// next are the objects to look at now: those that changed, then some of a sweep.
func (w *Writer) next() []ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []ref
	for at := range w.dirty {
		if len(all) == mostLooked {
			return all
		}
		all = append(all, at)
		delete(w.dirty, at)
	}
	n := min(len(w.left), mostLooked-len(all))
	all = append(all, w.left[:n]...)
	w.left = w.left[n:]
	return all
}

// round looks at some objects and writes what differs. It returns when to come again for
// what was put off; 0: nothing was.
func (w *Writer) round(ctx context.Context) time.Duration {
	if !w.o.Leader.Leads() {
		w.left = nil // all are looked at once it does
		w.follow = w.follow.end()
		return 0
	}
	t := &turn{w: w, look: w.look(), now: time.Now(), jobs: map[federation.ClusterID][]job{}}
	t.touch()
	looked := w.next()
	t.look = w.look() // again: some may be of a cluster that was attached after the first look, which would drop them
	if len(looked) == mostLooked {
		t.pause = w.o.Pace
	}
	for _, at := range looked {
		t.consider(at)
	}
	t.write(ctx)
	w.complain()
	return t.pause
}

// turn is one round.
type turn struct {
	w     *Writer
	look  round
	now   time.Time
	jobs  map[federation.ClusterID][]job
	pause time.Duration // guarded by mu of the writer
}

// consider finds out whether the status of an object is to be written.
func (t *turn) consider(at ref) {
	r, exists := t.w.record(at)
	if !exists || !t.look.attached(at.cluster) {
		t.drop(at)
		return
	}
	var n inputs
	l := t.look.at(t.w.parts.Proxies, &n)
	t.judge(l, at, r)
	n.read = l.mesh.Read.Deps()
	t.w.follow.note(at, l.keyOf(at), n)
	if _, stays := t.w.record(at); !stays {
		t.w.follow.forget(at)
	}
}

// drop forgets an object that its cluster does not have any more, or that has no cluster.
func (t *turn) drop(at ref) {
	t.w.follow.forget(at)
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	delete(t.w.records, at)
}

// judge decides whether the status of an object is written, now or later.
func (t *turn) judge(l round, at ref, r record) {
	patch, known := l.change(r.Original, t.now)
	switch wait := t.w.waits(at, r, t.now); {
	case !known:
		t.later(at, 0)
	case patch == nil:
		t.forgetObject(at, r)
	case !l.writable(at.cluster):
		// It is looked at again when the cluster changes.
	case wait > 0:
		t.later(at, wait)
	case len(t.jobs[at.cluster]) >= mostBatch:
		t.later(at, 0)
	default:
		t.jobs[at.cluster] = append(t.jobs[at.cluster], job{at, r, patch, !l.covers(r.Original)})
	}
}

// write writes into all clusters at the same time: one that does not answer delays no other.
func (t *turn) write(ctx context.Context) {
	var writing sync.WaitGroup
	for id, batch := range t.jobs {
		writing.Go(func() {
			for _, at := range t.w.write(ctx, id, t.look.identity(id), batch) {
				t.later(at, 0)
			}
		})
	}
	writing.Wait()
}

// later has an object looked at again.
func (t *turn) later(at ref, after time.Duration) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if t.w.records[at] != nil {
		t.w.dirty[at] = struct{}{}
	}
	if t.pause == 0 || after < t.pause {
		t.pause = max(after, t.w.o.Pace)
	}
}

func (w *Writer) record(at ref) (record, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.records[at]
	if r == nil {
		return record{}, false
	}
	return *r, true
}

// waits is how long the object may not be written yet.
func (w *Writer) waits(at ref, r record, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := r.notBefore.Sub(now)
	if t := w.clusters[at.cluster]; t != nil {
		for _, b := range []*block{t.blocked[""], t.blocked[named(r.Resource)]} {
			if b != nil {
				wait = max(wait, b.until.Sub(now))
			}
		}
	}
	return wait
}

// forgetObject forgets an object whose status is not written any more.
func (t *turn) forgetObject(at ref, r record) {
	if t.look.covers(r.Original) {
		return
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if now := t.w.records[at]; now != nil && now.Original == r.Original {
		delete(t.w.records, at)
	}
}
