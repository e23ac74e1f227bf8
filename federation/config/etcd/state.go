package etcd

import (
	"bytes"
	"sync/atomic"

	"isthmus.dev/isthmus/internal/btree"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// state is every committed object as of one revision. Apart from next it is
// never changed after it was made.
type state struct {
	revision int64
	hash     string // of the record of that revision
	mod      int64  // etcd's revision of the head when it was in force, or an older one
	objects  btree.Map[*config.Object]
	pasts    histories                 // what was done to them
	suspects btree.Map[config.Problem] // what is not used, by the object's key
	live     int64                     // bytes of all manifests
	base     int64                     // revision of the checkpoint that it was read from
	weight   int64                     // bytes of the records since
	// changed are the keys that the last record changed; whole says that the
	// state was not made by one record from the state before it.
	changed []federation.ObjectKey
	whole   bool
	next    atomic.Pointer[state] // what came after it, once it is known
}

func emptyState() *state {
	return &state{pasts: noHistories(0), whole: true}
}

// treeKey is the key of an object in trees. The store has objects for all proxies.
func treeKey(k federation.ObjectKey) string { return k.Everywhere().SortKey() }

func (s *state) get(k federation.ObjectKey) *config.Object {
	o, _ := s.objects.Get(treeKey(k))
	return o
}

// outcome is an entry with its object, or with why it is not used.
type outcome struct {
	*entry
	object *config.Object
	bad    error
}

// after returns the state after the record.
func (s *state) after(x *index, hash string, outcomes []outcome) *state {
	n := s.with(x, hash, outcomes)
	n.pasts = s.pasts.after(x)
	return n
}

// with returns the state with the objects of the index. One that cannot be used
// stays as it was before.
func (s *state) with(x *index, hash string, outcomes []outcome) *state {
	n := &state{revision: x.Revision, hash: hash, mod: s.mod, live: s.live, base: s.base, weight: s.weight}
	objects, suspects := s.objects.Txn(), s.suspects.Txn()
	n.changed = make([]federation.ObjectKey, 0, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if o.Action == config.Unchanged {
			continue
		}
		key := treeKey(o.Key)
		n.weight += int64(o.Length)
		if o.bad != nil {
			suspects.Set(key, config.Problem{
				Code: codeOf(o.bad), Object: o.Key.String(),
				Message: "its stored value is not used and what was in force before stays: " + o.bad.Error() + "; apply or delete the object again",
			})
			continue
		}
		suspects.Delete(key)
		n.changed = append(n.changed, o.Key)
		var old *config.Object
		if o.object == nil {
			old, _ = objects.Delete(key)
		} else {
			old, _ = objects.Set(key, o.object)
			n.live += int64(len(o.object.Manifest))
		}
		if old != nil {
			n.live -= int64(len(old.Manifest))
		}
	}
	n.objects, n.suspects = objects.Commit(), suspects.Commit()
	return n
}

// reusing returns the state with old's objects where they are equal.
func (s *state) reusing(old *state) *state {
	if old == nil || old.objects.Len() == 0 {
		return s
	}
	objects := s.objects.Txn()
	s.objects.Walk(func(key string, o *config.Object) bool {
		if p, found := old.objects.Get(key); found && p != o && sameObject(p, o) {
			objects.Set(key, p)
		}
		return false
	})
	s.objects = objects.Commit()
	return s
}

func sameObject(a, b *config.Object) bool {
	return a.Revision == b.Revision && a.APIVersion == b.APIVersion && a.Expires.Equal(b.Expires) && bytes.Equal(a.Manifest, b.Manifest)
}

// view is everything that readers see: committed objects and leased ones.
type view struct {
	*state
	leased btree.Map[*config.Object]
}

// see returns the object of the key: the committed one before a leased one.
func (v view) see(k federation.ObjectKey) *config.Object {
	if o := v.get(k); o != nil {
		return o
	}
	o, _ := v.leased.Get(treeKey(k))
	return o
}

// all returns every object in the order of keys.
func (v view) all() []config.Event {
	seen := v.objects
	if v.leased.Len() > 0 {
		t := v.leased.Txn()
		v.objects.Walk(func(key string, o *config.Object) bool { t.Set(key, o); return false })
		seen = t.Commit()
	}
	events := make([]config.Event, 0, seen.Len())
	seen.Walk(func(_ string, o *config.Object) bool {
		events = append(events, config.Event{New: o})
		return false
	})
	return events
}

// since returns how v differs from old at the keys.
func (v view) since(old view, keys []federation.ObjectKey) []config.Event {
	events := make([]config.Event, 0, len(keys))
	for _, k := range keys {
		if before, now := old.see(k), v.see(k); before != now {
			events = append(events, config.Event{Old: before, New: now})
		}
	}
	return events
}

// differing returns the keys at which any of both has an object of its own.
func (v view) differing(old view) []federation.ObjectKey {
	var keys []federation.ObjectKey
	found := map[federation.ObjectKey]bool{}
	collect := func(from, other view) {
		for _, tree := range []btree.Map[*config.Object]{from.objects, from.leased} {
			tree.Walk(func(_ string, o *config.Object) bool {
				if from.see(o.Key) != other.see(o.Key) && !found[o.Key] {
					found[o.Key], keys = true, append(keys, o.Key)
				}
				return false
			})
		}
	}
	collect(v, old)
	collect(old, v)
	return keys
}
