package btree

import "slices"

// Diff visits the keys that only one of the maps has, or for which they may have different
// values, in the order of keys. A value is nil where its map lacks the key. What the maps share
// is not looked at: with few changes between them, the cost does not depend on their size.
func Diff[V any](before, after Map[V], visit func(key string, before, after *V)) {
	a, b := begin(before), begin(after)
	for {
		a.drop()
		b.drop()
		switch {
		case a.ended() && b.ended():
			return
		case b.ended():
			a.alone(func(key string, v *V) { visit(key, v, nil) })
			continue
		case a.ended():
			b.alone(func(key string, v *V) { visit(key, nil, v) })
			continue
		case a.top() == b.top() && a.at == b.at:
			a.pop()
			b.pop()
			continue
		}
		keyA, heightA := a.least()
		keyB, heightB := b.least()
		switch {
		case keyA < keyB:
			a.alone(func(key string, v *V) { visit(key, v, nil) })
		case keyB < keyA:
			b.alone(func(key string, v *V) { visit(key, nil, v) })
		case heightA > heightB:
			a.expand()
		case heightB > heightA:
			b.expand()
		case heightA > 0:
			a.expand()
			b.expand()
		default:
			visit(keyA, &a.top().vals[a.at], &b.top().vals[b.at])
			a.at++
			b.at++
		}
	}
}

// cursor is what is left of a map: the nodes of the stack, the last one first.
type cursor[V any] struct {
	stack []*node[V]
	at    int // in the leaf on top
}

func begin[V any](m Map[V]) *cursor[V] {
	if m.root == nil {
		return &cursor[V]{}
	}
	return &cursor[V]{stack: []*node[V]{m.root}}
}

func (c *cursor[V]) ended() bool { return len(c.stack) == 0 }

func (c *cursor[V]) top() *node[V] { return c.stack[len(c.stack)-1] }

func (c *cursor[V]) pop() { c.stack, c.at = c.stack[:len(c.stack)-1], 0 }

// drop drops leaves that have nothing left.
func (c *cursor[V]) drop() {
	for !c.ended() && c.top().kids == nil && c.at >= len(c.top().keys) {
		c.pop()
	}
}

// expand replaces the inner node on top by its kids.
func (c *cursor[V]) expand() {
	n := c.top()
	c.pop()
	c.stack = slices.Grow(c.stack, len(n.kids))
	for i := len(n.kids) - 1; i >= 0; i-- {
		c.stack = append(c.stack, n.kids[i])
	}
}

// least is the next key, and the depth of its leaf.
func (c *cursor[V]) least() (key string, height int) {
	n := c.top()
	for ; n.kids != nil; height++ {
		n = n.kids[0]
	}
	if height > 0 {
		return n.keys[0], height
	}
	return n.keys[c.at], 0
}

// alone takes the next entry if the top is a leaf, and else comes closer to it.
func (c *cursor[V]) alone(visit func(key string, v *V)) {
	n := c.top()
	if n.kids != nil {
		c.expand()
		return
	}
	visit(n.keys[c.at], &n.vals[c.at])
	c.at++
}
