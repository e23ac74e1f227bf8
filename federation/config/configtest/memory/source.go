package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/internal/retry"
)

// Run is part of config.Source.
func (s *Store) Run(ctx context.Context, to config.Sink) error {
	f := &feed{to: to, committed: map[federation.ObjectKey]*config.Object{}, leased: map[federation.ObjectKey]*config.Object{}}
	for {
		s.mu.Lock()
		moved, next, fails := s.moved, s.expire(), s.fails
		log := s.log
		leased := make(map[federation.ObjectKey]*config.Object, len(s.leased))
		for key, l := range s.leased {
			leased[key] = l.object
		}
		s.mu.Unlock()
		f.report(fails)
		if fails == nil {
			f.catchUp(log, leased)
		}
		if !wait(ctx, moved, next) {
			return nil
		}
	}
}

// wait waits for a change or for the next lease's end; it reports whether the
// context still lives.
func wait(ctx context.Context, moved <-chan struct{}, next time.Time) bool {
	end := retry.Forever
	if !next.IsZero() {
		end = time.Until(next)
	}
	return retry.Await(ctx, end, moved)
}

// feed is one Run: what it gave so far.
type feed struct {
	to        config.Sink
	first     bool
	revision  int64
	committed map[federation.ObjectKey]*config.Object
	leased    map[federation.ObjectKey]*config.Object
	said      []config.Problem
}

func (f *feed) see(key federation.ObjectKey) *config.Object {
	if o := f.committed[key]; o != nil {
		return o
	}
	return f.leased[key]
}

func (f *feed) report(fails error) {
	var problems []config.Problem
	if fails != nil {
		problems = append(problems, config.Problem{Code: "UNREACHABLE", Message: "the store does not answer: " + fails.Error()})
	}
	for _, key := range keysOf(f.leased) {
		if f.committed[key] != nil {
			problems = append(problems, config.Problem{
				Code: "SHADOWED", Object: key.String(),
				Message: "the configuration has an object of this name, which takes precedence; register under another name",
			})
		}
	}
	if !slices.Equal(problems, f.said) {
		f.said = problems
		f.to.Trouble(slices.Clone(problems))
	}
}

func (f *feed) catchUp(log []config.Record, leased map[federation.ObjectKey]*config.Object) {
	if !f.first {
		for _, r := range log {
			replay(f.committed, r)
		}
		f.first, f.revision, f.leased = true, int64(len(log)), leased
		all := maps.Clone(leased)
		maps.Copy(all, f.committed)
		u := config.Update{Revision: f.revision, Full: true}
		for _, key := range keysOf(all) {
			u.Events = append(u.Events, config.Event{New: all[key]})
		}
		f.to.Update(u)
	}
	for _, r := range log[f.revision:] {
		keys := make([]federation.ObjectKey, len(r.Changes))
		for i, c := range r.Changes {
			keys[i] = c.Key
		}
		f.send(keys, func() { replay(f.committed, r); f.revision = r.Revision })
	}
	both := maps.Clone(leased)
	maps.Copy(both, f.leased)
	f.send(keysOf(both), func() { f.leased = leased })
	f.report(nil)
}

// send passes on how change alters the objects of the keys.
func (f *feed) send(keys []federation.ObjectKey, change func()) {
	before := make([]*config.Object, len(keys))
	for i, key := range keys {
		before[i] = f.see(key)
	}
	u := config.Update{Revision: f.revision}
	change()
	moved := u.Revision != f.revision
	u.Revision = f.revision
	for i, key := range keys {
		if now := f.see(key); now != before[i] {
			u.Events = append(u.Events, config.Event{Old: before[i], New: now})
		}
	}
	if moved || len(u.Events) > 0 {
		f.to.Update(u)
	}
}

func replay(objects map[federation.ObjectKey]*config.Object, r config.Record) {
	for _, c := range r.Changes {
		switch c.Action {
		case config.Unchanged:
		case config.Deleted:
			delete(objects, c.Key)
		default:
			objects[c.Key] = c.Object
		}
	}
}

func keysOf[V any](objects map[federation.ObjectKey]V) []federation.ObjectKey {
	return slices.SortedFunc(maps.Keys(objects), federation.ObjectKey.Compare)
}

func sorted(objects map[federation.ObjectKey]*config.Object) []config.Object {
	list := make([]config.Object, 0, len(objects))
	for _, key := range keysOf(objects) {
		list = append(list, *objects[key])
	}
	return list
}
