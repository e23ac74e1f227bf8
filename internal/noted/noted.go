// Package noted reads sorted maps for values that are computed from them and kept beside
// them. A map is read through a View alone, which notes what is read. A value is computed
// again when something changed that it read, and not before. Writes need no mark: what
// changed is what differs between two maps.
package noted

import (
	"iter"

	"isthmus.dev/isthmus/internal/btree"
)

// Kind describes a map: how its entries are noted and compared.
type Kind[V any] struct {
	Name string // no other map of the values has it
	// Group is the beginning of the key that is noted; nil: the whole key.
	Group func(key string) string
	Equal func(a, b V) bool
	// About names the value that the group is about, which is computed even if it has never
	// read anything; nil, or "": none.
	About func(group string) string
}

func (k *Kind[V]) group(key string) string {
	if k.Group == nil {
		return key
	}
	return k.Group(key)
}

// Reader notes what one value is computed from. The zero Reader has read nothing.
type Reader struct{ notes map[string]note }

func (r *Reader) note(name, group string) {
	if r.notes == nil {
		r.notes = map[string]note{}
	}
	r.notes[start(name, group)] = note{group: group}
}

// View is a map for Readers.
type View[V any] struct {
	kind        *Kind[V]
	before, now btree.Map[V]
}

// ViewOf returns a view of the map as it is now; what differs from before has changed.
func ViewOf[V any](kind *Kind[V], before, now btree.Map[V]) View[V] {
	return View[V]{kind, before, now}
}

// Get returns the value of the key.
func (v View[V]) Get(r *Reader, key string) (V, bool) {
	r.note(v.kind.Name, v.kind.group(key))
	return v.now.Get(key)
}

// In yields the entries of the group, in the order of their keys.
func (v View[V]) In(r *Reader, group string) iter.Seq2[string, V] {
	r.note(v.kind.Name, group)
	return func(yield func(string, V) bool) {
		v.now.WalkPrefix(group, func(key string, value V) bool { return !yield(key, value) })
	}
}

// Affected calls mark for each value that the changes affect; for some it calls it several times.
func (v View[V]) Affected(notes Notes, mark func(value string)) {
	if v.before == v.now || v.kind.About == nil && !notes.hasAny(v.kind.Name) {
		return
	}
	marked, latest := false, ""
	btree.Diff(v.before, v.now, func(key string, before, now *V) {
		if before != nil && now != nil && v.kind.Equal(*before, *now) {
			return
		}
		group := v.kind.group(key)
		if marked && group == latest {
			return
		}
		marked, latest = true, group
		notes.affected(v.kind.Name, group, mark)
		if v.kind.About == nil {
			return
		}
		if about := v.kind.About(group); about != "" {
			mark(about)
		}
	})
}

// Value is a View of a single value.
type Value[V any] struct {
	kind        *Kind[V]
	before, now V
}

// ValueOf returns a view of the value as it is now.
func ValueOf[V any](kind *Kind[V], before, now V) Value[V] { return Value[V]{kind, before, now} }

// Get returns the value.
func (v Value[V]) Get(r *Reader) V {
	r.note(v.kind.Name, "")
	return v.now
}

// Affected is View.Affected.
func (v Value[V]) Affected(notes Notes, mark func(value string)) {
	if !v.kind.Equal(v.before, v.now) {
		notes.affected(v.kind.Name, "", mark)
	}
}
