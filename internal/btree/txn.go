package btree

import "slices"

// Txn is a map in the making. It is for one goroutine, and not to be written while
// it is walked. The map that it began with stays as it is.
type Txn[V any] struct {
	m     Map[V]
	owner *owner // of the nodes that this transaction made; nil before the first write
}

// Len is the number of entries.
func (t *Txn[V]) Len() int { return t.m.n }

// Get returns the value of the key.
func (t *Txn[V]) Get(key string) (V, bool) { return t.m.Get(key) }

// Walk is Map.Walk.
func (t *Txn[V]) Walk(visit func(key string, v V) bool) { t.m.Walk(visit) }

// WalkPrefix is Map.WalkPrefix.
func (t *Txn[V]) WalkPrefix(prefix string, visit func(key string, v V) bool) {
	t.m.WalkPrefix(prefix, visit)
}

// Commit returns the map as it is now. Further writes do not change it.
func (t *Txn[V]) Commit() Map[V] {
	t.owner = nil
	return t.m
}

// Set puts the value under the key. It returns what was there before.
func (t *Txn[V]) Set(key string, v V) (old V, had bool) {
	t.begin()
	if t.m.root == nil {
		t.m.root = &node[V]{owner: t.owner}
	}
	t.m.root = t.own(t.m.root)
	old, had, right := t.set(t.m.root, key, v)
	if !had {
		t.m.n++
	}
	if right != nil {
		left := t.m.root
		t.m.root = &node[V]{keys: []string{left.keys[0], right.keys[0]}, kids: []*node[V]{left, right}, owner: t.owner}
	}
	return old, had
}

// Delete removes the key. It returns what was there.
func (t *Txn[V]) Delete(key string) (old V, had bool) {
	old, had = t.m.Get(key)
	if !had {
		return old, false
	}
	t.begin()
	t.m.root = t.own(t.m.root)
	t.remove(t.m.root, key)
	t.m.n--
	for len(t.m.root.kids) == 1 {
		t.m.root = t.m.root.kids[0]
	}
	if len(t.m.root.keys) == 0 {
		t.m.root = nil
	}
	return old, true
}

func (t *Txn[V]) begin() {
	if t.owner == nil {
		t.owner = new(owner)
	}
}

// own returns the node if this transaction made it, or else a copy.
func (t *Txn[V]) own(n *node[V]) *node[V] {
	if n.owner == t.owner {
		return n
	}
	c := &node[V]{keys: roomy(n.keys), owner: t.owner}
	if n.kids != nil {
		c.kids = roomy(n.kids)
	} else {
		c.vals = roomy(n.vals)
	}
	return c
}

// roomStep is by how many items the room of a node grows. Nodes stay as they were
// when a change has ended, so that each would keep the room that it has in vain.
const roomStep = 8

// roomy copies the items to where one more has room.
func roomy[T any](items ...[]T) []T {
	n := 0
	for _, part := range items {
		n += len(part)
	}
	all := make([]T, 0, (n/roomStep+1)*roomStep)
	for _, part := range items {
		all = append(all, part...)
	}
	return all
}

func insert[T any](items []T, at int, item T) []T {
	if len(items) == cap(items) {
		items = roomy(items)
	}
	return slices.Insert(items, at, item)
}

// set returns what was there before, and the right half of a node that became too
// large.
func (t *Txn[V]) set(n *node[V], key string, v V) (old V, had bool, right *node[V]) {
	if n.kids != nil {
		i := n.kid(key)
		n.kids[i] = t.own(n.kids[i])
		old, had, right = t.set(n.kids[i], key, v)
		if right == nil {
			return old, had, nil
		}
		n.keys, n.kids = insert(n.keys, i+1, right.keys[0]), insert(n.kids, i+1, right)
		return old, had, t.split(n, i+1)
	}
	i, had := slices.BinarySearch(n.keys, key)
	if had {
		old, n.vals[i] = n.vals[i], v
		return old, true, nil
	}
	n.keys, n.vals = insert(n.keys, i, key), insert(n.vals, i, v)
	return old, false, t.split(n, i)
}

// split takes the right half off a node that is too large. A node that grew at its
// end stays full: keys that come in their order fill nodes.
func (t *Txn[V]) split(n *node[V], grewAt int) *node[V] {
	if len(n.keys) <= maxItems {
		return nil
	}
	at := len(n.keys) / 2
	if grewAt == len(n.keys)-1 {
		at = grewAt
	}
	right := &node[V]{keys: roomy(n.keys[at:]), owner: t.owner}
	n.keys = roomy(n.keys[:at])
	if n.kids != nil {
		right.kids = roomy(n.kids[at:])
		n.kids = roomy(n.kids[:at])
	} else {
		right.vals = roomy(n.vals[at:])
		n.vals = roomy(n.vals[:at])
	}
	return right
}

// remove removes a key that is there.
func (t *Txn[V]) remove(n *node[V], key string) {
	if n.kids == nil {
		i, _ := slices.BinarySearch(n.keys, key)
		n.keys, n.vals = slices.Delete(n.keys, i, i+1), slices.Delete(n.vals, i, i+1)
		return
	}
	i := n.kid(key)
	n.kids[i] = t.own(n.kids[i])
	t.remove(n.kids[i], key)
	switch size := len(n.kids[i].keys); {
	case size == 0:
		n.keys, n.kids = slices.Delete(n.keys, i, i+1), slices.Delete(n.kids, i, i+1)
	case size >= maxItems/4:
	case i > 0 && size+len(n.kids[i-1].keys) <= maxItems:
		t.join(n, i)
	case i+1 < len(n.kids) && size+len(n.kids[i+1].keys) <= maxItems:
		t.join(n, i+1)
	}
}

// join makes one of the kid and the one before it.
func (t *Txn[V]) join(n *node[V], i int) {
	left, right := t.own(n.kids[i-1]), n.kids[i]
	from := len(left.keys)
	left.keys = roomy(left.keys, right.keys)
	if right.kids != nil {
		left.keys[from] = n.keys[i] // the key of a first kid says nothing
		left.kids = roomy(left.kids, right.kids)
	} else {
		left.vals = roomy(left.vals, right.vals)
	}
	n.kids[i-1] = left
	n.keys, n.kids = slices.Delete(n.keys, i, i+1), slices.Delete(n.kids, i, i+1)
}
