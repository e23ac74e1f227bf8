// Package derive computes values from snapshots. A computation reads through a
// federation.Reader, which notes what it reads; a value is computed again when
// something changed that it was computed from, and not before. There is no other
// record of what depends on what.
//
// Index finds the values that a change affects, for readers that keep values
// themselves, such as the groups of xds. Table keeps them, too. ByHost is for many
// small values that depend on the services of one hostname each.
package derive

import (
	"sync"

	"isthmus.dev/isthmus/federation"
)

// Table keeps a value for each key that was asked for. It is safe for concurrent
// use, and holds no lock while it computes.
type Table[K comparable, V any] struct {
	compute func(*federation.Reader, K) V

	mu    sync.Mutex
	at    *federation.Snapshot // up to which changes were looked at; nil: none
	rows  map[K]*row[V]
	index *Index[K]
}

type row[V any] struct {
	value V
	from  uint64 // version of the snapshot that it was computed from
	stale bool   // something that it was computed from changed since
	deps  federation.Deps
}

// NewTable returns a table of what compute returns. A value must depend on nothing but
// the key and what is read.
func NewTable[K comparable, V any](compute func(*federation.Reader, K) V) *Table[K, V] {
	return &Table[K, V]{compute: compute, rows: map[K]*row[V]{}, index: NewIndex[K]()}
}

// Get returns the value that compute returns for the snapshot. It is the very same value
// until something changes that it was computed from.
func (t *Table[K, V]) Get(s *federation.Snapshot, key K) V {
	if value, is := t.known(s, key); is {
		return value
	}
	r := s.Read()
	value := t.compute(r, key)
	t.keep(s, key, &row[V]{value: value, from: s.Version(), deps: r.Deps()})
	return value
}

func (t *Table[K, V]) known(s *federation.Snapshot, key K) (value V, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follow(s)
	if known := t.rows[key]; known != nil && !known.stale && known.from <= s.Version() {
		return known.value, true
	}
	return value, false
}

// follow marks the values that the changes up to the snapshot affect.
func (t *Table[K, V]) follow(s *federation.Snapshot) {
	if t.at != nil && t.at.Version() >= s.Version() {
		return
	}
	before := t.at
	t.at = s
	if before == nil {
		return
	}
	changes := s.ChangesSince(before.Version())
	if changes.All {
		for _, r := range t.rows {
			r.stale = true
		}
		return
	}
	for _, key := range t.index.Affected(changes, s) {
		t.rows[key].stale = true
	}
}

func (t *Table[K, V]) keep(s *federation.Snapshot, key K, now *row[V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.rows[key]
	switch {
	case before == nil:
		before = &row[V]{}
	case before.from > s.Version():
		return // a reader that is ahead computed it
	}
	// Changes that another reader has looked at since were not looked at for this value.
	now.stale = s.Version() < t.at.Version()
	t.index.Replace(key, before.deps, now.deps)
	t.rows[key] = now
}

// Forget drops the value of the key.
func (t *Table[K, V]) Forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rows[key]; r != nil {
		t.index.Replace(key, r.deps, federation.Deps{})
		delete(t.rows, key)
	}
}

// Len is how many values the table keeps.
func (t *Table[K, V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows)
}
