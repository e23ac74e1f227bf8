// Package smallmap has maps and sets that nearly always have few keys. A map of Go takes several
// hundred bytes for its first key; these take little more than their keys, and are searched
// in a row. With many keys they are maps of Go.
package smallmap

import (
	"iter"
	"maps"
	"slices"
)

// most is how many keys are searched in a row. Keys that differ mostly differ in their length,
// so that this takes no longer than to hash one.
const most = 16

// Map is a map. Its zero value is empty and can be used. A copy means the same map, as with
// maps of Go, once something was put into it. It is for one goroutine while it changes.
type Map[K comparable, V any] struct{ of *contents[K, V] }

// Set is a set of keys.
type Set[K comparable] = Map[K, struct{}]

// contents are in a row, or in a map once they were more than most.
type contents[K comparable, V any] struct {
	row  []entry[K, V]
	many map[K]V
}

// entry has the value first: one without a size takes no room there.
type entry[K comparable, V any] struct {
	value V
	key   K
}

// Add puts the key into a set.
func Add[K comparable](to *Set[K], key K) { to.Put(key, struct{}{}) }

// Put sets the value of the key.
func (m *Map[K, V]) Put(key K, value V) {
	if m.of == nil {
		m.of = &contents[K, V]{}
	}
	c := m.of
	if c.many != nil {
		c.many[key] = value
		return
	}
	if i := c.at(key); i >= 0 {
		c.row[i].value = value
		return
	}
	if len(c.row) == most {
		c.spread()
		c.many[key] = value
		return
	}
	c.row = append(c.row, entry[K, V]{value, key})
}

// at is the place of the key in the row; -1: it is not there.
func (c *contents[K, V]) at(key K) int {
	for i := range c.row {
		if c.row[i].key == key {
			return i
		}
	}
	return -1
}

func (c *contents[K, V]) spread() {
	c.many = make(map[K]V, most+1)
	for _, e := range c.row {
		c.many[e.key] = e.value
	}
	c.row = nil
}

// Get returns the value of the key, and whether it has one.
func (m Map[K, V]) Get(key K) (value V, has bool) {
	if m.of == nil {
		return value, false
	}
	if m.of.many != nil {
		value, has = m.of.many[key]
		return value, has
	}
	if i := m.of.at(key); i >= 0 {
		return m.of.row[i].value, true
	}
	return value, false
}

// Has reports whether the key has a value.
func (m Map[K, V]) Has(key K) bool {
	_, has := m.Get(key)
	return has
}

// Delete removes the key.
func (m Map[K, V]) Delete(key K) {
	if m.of == nil {
		return
	}
	delete(m.of.many, key)
	if i := m.of.at(key); i >= 0 {
		m.of.row = slices.Delete(m.of.row, i, i+1)
	}
}

// DeleteFunc removes the keys for which del is true.
func (m Map[K, V]) DeleteFunc(del func(K, V) bool) {
	if m.of == nil {
		return
	}
	maps.DeleteFunc(m.of.many, del)
	m.of.row = slices.DeleteFunc(m.of.row, func(e entry[K, V]) bool { return del(e.key, e.value) })
}

// Len is the number of keys.
func (m Map[K, V]) Len() int {
	if m.of == nil {
		return 0
	}
	return len(m.of.row) + len(m.of.many)
}

// All yields the keys and their values, in any order. The map must not change meanwhile.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.of == nil {
			return
		}
		for i := range m.of.row {
			if !yield(m.of.row[i].key, m.of.row[i].value) {
				return
			}
		}
		for key, value := range m.of.many {
			if !yield(key, value) {
				return
			}
		}
	}
}

// Keys yields the keys, in any order. The map must not change meanwhile.
func (m Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for key := range m.All() {
			if !yield(key) {
				return
			}
		}
	}
}

// Clone returns a map of its own with the same keys and values.
func (m Map[K, V]) Clone() Map[K, V] {
	if m.of == nil {
		return m
	}
	return Map[K, V]{&contents[K, V]{row: slices.Clone(m.of.row), many: maps.Clone(m.of.many)}}
}

// Emptied is the map without its keys, in the memory that it has. One that became large
// gives its memory back: to empty it would cost as much each time.
func (m Map[K, V]) Emptied() Map[K, V] {
	const large = 2 * most
	if m.of == nil || len(m.of.many) > large {
		return Map[K, V]{}
	}
	clear(m.of.row)
	m.of.row = m.of.row[:0]
	clear(m.of.many)
	return m
}
