package serviceimport

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/internal/wake"
)

// importWriter writes to one cluster. One goroutine writes; those that read wake it.
type importWriter struct {
	options Options
	id      federation.ClusterID
	log     *slog.Logger
	cluster *listwatch.Cluster
	wake    wake.Signal
	imports *listwatch.Mirror[found]
	spaces  *listwatch.Mirror[listwatch.Namespace]

	// What follows is the writer's alone.
	version uint64                      // of the snapshot that wanted is of
	wanted  map[listwatch.Key]Import    // of the services that are exported
	pauses  retry.Pauses[listwatch.Key] // of ServiceImports whose write failed, or that are written again and again
	wrote   map[step]string             // what was written last
	missing map[listwatch.Key]time.Time // since when services of ServiceImports are not exported
	told    map[listwatch.Key]bool      // ServiceImports of others that were logged
}

// Changed is part of listwatch.MirrorNews.
func (f *importWriter) Changed(listwatch.Key) { f.ChangedAll() }

// ChangedAll is part of listwatch.MirrorNews.
func (f *importWriter) ChangedAll() {
	f.wake.Notify()
}

// following logs, once, why what was read may be out of date. Each mirror has one of its own.
func (f *importWriter) following() func(error) {
	told := ""
	return func(err error) {
		switch {
		case err == nil:
			told = ""
		case !listwatch.Interrupted(err) && told != err.Error():
			told = err.Error()
			f.log.Warn("what is needed to write ServiceImports cannot be read; they may be out of date", slog.Any("err", err))
		}
	}
}

// run writes until the context ends.
func (f *importWriter) run(ctx context.Context) {
	next, dirty := time.Now(), true
	for ctx.Err() == nil {
		s := f.options.Snapshots.Latest()
		dirty = f.follow(s) || dirty
		if dirty {
			next = time.Now().Add(f.work(ctx))
		}
		dirty = f.awaitNews(ctx, s, time.Until(next))
	}
}

// follow applies which services are exported, and reports whether that changed.
func (f *importWriter) follow(s *federation.Snapshot) (moved bool) {
	changes := s.ChangesSince(f.version)
	f.version = s.Version()
	if changes.All {
		moved = len(f.wanted) > 0
		clear(f.wanted)
		for svc := range s.Services().All() {
			moved = f.update(svc.Key, svc) || moved
		}
		return moved
	}
	for _, change := range changes.Services {
		svc, _ := s.Service(change.Key)
		moved = f.update(change.Key, svc) || moved
	}
	return moved
}

// update reads a service, and reports whether its import changed.
func (f *importWriter) update(service federation.ServiceKey, svc *federation.Service) bool {
	key, is := keyOf(service)
	if !is {
		return false
	}
	before, had := f.wanted[key]
	if svc == nil {
		delete(f.wanted, key)
		return had
	}
	now := importOf(svc)
	f.wanted[key] = now
	return !had || before.digest() != now.digest()
}

// awaitNews waits for another snapshot, and for what makes work: news of the cluster, and the
// time. It reports whether there may be work.
func (f *importWriter) awaitNews(ctx context.Context, s *federation.Snapshot, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.Superseded():
		return false
	case <-f.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// work does what is to be done now, and returns after how long there may be more.
func (f *importWriter) work(ctx context.Context) time.Duration {
	if !f.imports.Complete() || !f.spaces.Complete() {
		return longestPause
	}
	for _, key := range f.keys(f.imports.Keys()) {
		switch {
		case ctx.Err() != nil:
			return 0
		case f.options.Leader != nil && !f.options.Leader.Leads():
			return again
		}
		f.reconcile(ctx, key)
	}
	return f.pauses.Wait(time.Now())
}

// keys are the ServiceImports that there are or should be, in order.
func (f *importWriter) keys(have []listwatch.Key) []listwatch.Key {
	all := map[listwatch.Key]bool{}
	for _, key := range have {
		all[key] = true
	}
	for key := range f.wanted {
		all[key] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b listwatch.Key) int { return strings.Compare(a.String(), b.String()) })
}

// reconcile does what is to be done about one ServiceImport.
func (f *importWriter) reconcile(ctx context.Context, key listwatch.Key) {
	now := time.Now()
	if f.pauses.Has(key, now) {
		return
	}
	var want *Import
	if of, exported := f.wanted[key]; exported {
		want = &of
		delete(f.missing, key)
	}
	is, has := f.imports.Get(key)
	namespace, exists := f.spaces.Get(listwatch.Key{Name: key.Namespace})
	todo := decide(want, is, has, exists && !namespace.Ending)
	switch todo {
	case nothing:
		f.pauses.End(key)
		return
	case leave:
		f.logForeign(key)
		return
	case remove:
		if f.waits(key, now) {
			return
		}
	case create, update, status:
	}
	delete(f.told, key)
	f.pause(step{key, todo}, want, f.write(ctx, key, is, todo, want))
	retry.Sleep(ctx, pace)
}

// waits reports whether it is too early to delete the ServiceImport of a service that is not
// exported any more: what the hub knows of clusters may be changing as a whole.
func (f *importWriter) waits(key listwatch.Key, now time.Time) bool {
	since, known := f.missing[key]
	if !known {
		f.missing[key], since = now, now
	}
	if end := since.Add(f.options.Grace); now.Before(end) {
		f.pauses.Until(key, end)
		return true
	}
	delete(f.missing, key)
	return false
}
