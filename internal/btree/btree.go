// Package btree has sorted maps that are never changed: a change makes another
// map, which shares with the first one all but the nodes on the way to what
// changed. They are B+ trees: an entry costs little more than its key and value,
// and a change costs a copy of one node of each level.
package btree

import (
	"iter"
	"slices"
	"strings"
)

// maxItems is how many keys a node has at most: small enough for a change to copy
// little, large enough for nodes to weigh little beside their keys. With the key for
// which a node is split, it fills a size in which the runtime allocates.
const maxItems = 31

// Map is a map with sorted keys. Its zero value is empty. All methods are safe for
// concurrent use.
type Map[V any] struct {
	root *node[V]
	n    int
}

// node is a leaf with values, or an inner node with kids. The key of a kid is not
// above any key in it and above all keys in the kids before it; that of the first
// kid says nothing.
type node[V any] struct {
	keys  []string
	vals  []V
	kids  []*node[V]
	owner *owner // the transaction that may still change the node
}

// owner is an address that nothing else has.
type owner struct{ _ byte }

// Len is the number of entries.
func (m Map[V]) Len() int { return m.n }

// Get returns the value of the key.
func (m Map[V]) Get(key string) (V, bool) { return m.root.get(key) }

// From yields the entries in the order of keys, beginning with the key or what
// comes after it.
func (m Map[V]) From(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.ascend(key, yield) }
}

// Before yields the entries whose keys come before the key, the last one first; for "", all entries.
func (m Map[V]) Before(key string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) { m.root.descend(key, yield) }
}

// Walk visits the entries in the order of keys until a visit returns true.
func (m Map[V]) Walk(visit func(key string, v V) bool) {
	m.root.ascend("", func(key string, v V) bool { return !visit(key, v) })
}

// WalkPrefix visits the entries whose keys begin with the prefix, in the order of
// keys, until a visit returns true.
func (m Map[V]) WalkPrefix(prefix string, visit func(key string, v V) bool) {
	m.root.ascend(prefix, func(key string, v V) bool {
		return strings.HasPrefix(key, prefix) && !visit(key, v)
	})
}

// Txn begins a change.
func (m Map[V]) Txn() Txn[V] { return Txn[V]{m: m} }

func (n *node[V]) get(key string) (v V, ok bool) {
	if n == nil {
		return v, false
	}
	for n.kids != nil {
		n = n.kids[n.kid(key)]
	}
	i, ok := slices.BinarySearch(n.keys, key)
	if ok {
		v = n.vals[i]
	}
	return v, ok
}

// kid is the kid of an inner node where the key belongs.
func (n *node[V]) kid(key string) int {
	i, exact := slices.BinarySearch(n.keys[1:], key)
	if exact {
		i++
	}
	return i
}

// ascend yields the entries from the key on and tells whether more are wanted.
func (n *node[V]) ascend(from string, yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	if n.kids != nil {
		first := n.kid(from)
		for i, kid := range n.kids[first:] {
			if i > 0 {
				from = ""
			}
			if !kid.ascend(from, yield) {
				return false
			}
		}
		return true
	}
	first, _ := slices.BinarySearch(n.keys, from)
	for i := first; i < len(n.keys); i++ {
		if !yield(n.keys[i], n.vals[i]) {
			return false
		}
	}
	return true
}

// descend yields the entries before the key from the last one on and tells whether more are wanted.
func (n *node[V]) descend(before string, yield func(string, V) bool) bool {
	if n == nil {
		return true
	}
	last := len(n.kids) - 1
	if n.kids == nil {
		last = len(n.keys) - 1
	}
	switch {
	case before == "":
	case n.kids != nil:
		last = n.kid(before)
	default:
		place, _ := slices.BinarySearch(n.keys, before)
		last = place - 1
	}
	for i := last; i >= 0; i-- {
		if n.kids == nil {
			if !yield(n.keys[i], n.vals[i]) {
				return false
			}
			continue
		}
		if i < last {
			before = ""
		}
		if !n.kids[i].descend(before, yield) {
			return false
		}
	}
	return true
}
