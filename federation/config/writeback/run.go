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
	for ctx.Err() == nil {
		view, snapshot, proxies := parts.Views.Latest(), w.o.Snapshots.Latest(), parts.Proxies.Changed()
		pause := w.round(ctx)
		if !retry.Sleep(ctx, w.o.Pace) || len(w.left) > 0 {
			continue
		}
		var again <-chan time.Time
		if pause > 0 {
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
		case <-view.Superseded():
			w.all()
		case <-snapshot.Superseded():
			w.all()
		case <-proxies:
			w.all()
		case <-w.o.Owner.Changed():
			w.all()
		case <-w.wake:
		case <-again:
		}
	}
	return nil
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
	if w.stale {
		w.stale, w.left = false, slices.Collect(maps.Keys(w.records))
	}
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
	if !w.o.Owner.Owns() {
		w.left = nil // all are looked at once it does
		return 0
	}
	l, now := w.look(), time.Now()
	jobs := map[federation.ClusterID][]job{}
	pause := time.Duration(0)
	later := func(at ref, d time.Duration) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.records[at] != nil {
			w.dirty[at] = struct{}{}
		}
		if pause == 0 || d < pause {
			pause = max(d, w.o.Pace)
		}
	}
	looked := w.next()
	if len(looked) == mostLooked {
		pause = w.o.Pace
	}
	for _, at := range looked {
		r, exists := w.record(at)
		if !exists {
			continue
		}
		patch, known := l.change(r.Original, now)
		switch wait := w.waits(at, r, now); {
		case !l.attached(at.cluster):
			w.Deleted(at.cluster, at.key)
		case !known:
			later(at, 0)
		case patch == nil:
			w.settled(l, at, r)
		case !l.writable(at.cluster):
			// Its phase changes with a snapshot.
		case wait > 0:
			later(at, wait)
		case len(jobs[at.cluster]) >= mostBatch:
			later(at, 0)
		default:
			jobs[at.cluster] = append(jobs[at.cluster], job{at, r, patch, !l.covers(r.Original)})
		}
	}
	var writing sync.WaitGroup
	for id, batch := range jobs {
		writing.Go(func() {
			for _, at := range w.write(ctx, id, batch) {
				later(at, 0)
			}
		})
	}
	writing.Wait()
	w.complain()
	return pause
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
		for _, b := range []*block{t.blocked[""], t.blocked[r.Resource.Resource]} {
			if b != nil {
				wait = max(wait, b.until.Sub(now))
			}
		}
	}
	return wait
}

// settled forgets an object whose status is not written any more.
func (w *Writer) settled(l look, at ref, r record) {
	if l.covers(r.Original) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.records[at]; now != nil && now.Original == r.Original {
		delete(w.records, at)
	}
}
