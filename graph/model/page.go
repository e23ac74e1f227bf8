// Package model has the types of the public contract as Go values. Types written by hand
// wrap the domain's values and compute a field when it is requested; the plain ones are
// generated.
package model

import (
	"iter"
	"sync"
)

// Window is the part of a list that a client asked for. First and Last are in
// bounds already; at most one is set.
type Window struct {
	First, Last   *int
	After, Before string // Keys; "" is none.
}

// DefaultPage is the size of a page that names none.
const DefaultPage = 50

// List is a list in the order of its keys, which are unique in it. A key names
// its item whatever else the list has, so that pages of one walk neither repeat
// nor miss what stays while the list changes.
type List[T any] struct {
	Name  string // Tells this list's cursors from those of others.
	Items iter.Seq[T]
	Key   func(T) string
	Count func() int         // nil: Items are counted, all of them.
	From  func() iter.Seq[T] // Items from a place before the window on; nil: all Items.
	// Size is what an item counts for; a page has items of at most MaxPage together, and
	// at least one. nil: any page will do.
	Size    func(T) int
	MaxPage int
}

// Page is a window on a list. It is cut and counted once, when first asked for.
type Page[T any] struct {
	list  string
	cut   func() piece[T]
	count func() int
}

type piece[T any] struct {
	items         []T
	keys          []string
	before, after bool
}

// NewPage makes the page of list that the window shows.
func NewPage[T any](list List[T], window Window) Page[T] {
	count := list.Count
	if count == nil {
		count = func() int { return length(list.Items) }
	}
	if list.From != nil && window.After != "" {
		list.Items = list.From()
	}
	return Page[T]{
		list:  list.Name,
		cut:   sync.OnceValue(func() piece[T] { return cut(list, window) }),
		count: sync.OnceValue(count),
	}
}

func length[T any](items iter.Seq[T]) int {
	total := 0
	for range items {
		total++
	}
	return total
}

func cut[T any](list List[T], window Window) piece[T] {
	found := piece[T]{before: window.After != ""}
	size, fromBack := DefaultPage, window.Last != nil
	switch {
	case fromBack:
		size = *window.Last
	case window.First != nil:
		size = *window.First
	}
	for item := range list.Items {
		key := list.Key(item)
		if window.After != "" && key <= window.After {
			continue
		}
		if window.Before != "" && key >= window.Before || !fromBack && len(found.items) == size {
			found.after = true
			break
		}
		if fromBack && len(found.items) == size {
			found.before = true
			found.items, found.keys = found.items[1:], found.keys[1:]
		}
		found.items = append(found.items, item)
		found.keys = append(found.keys, key)
	}
	if list.Size != nil {
		found.lighten(list, fromBack)
	}
	return found
}

// lighten leaves as many of the items as the list lets a page have.
func (p *piece[T]) lighten(list List[T], fromBack bool) {
	kept, total, all := 0, 0, len(p.items)
	for ; kept < all; kept++ {
		at := kept
		if fromBack {
			at = all - 1 - kept
		}
		total += list.Size(p.items[at])
		if total > list.MaxPage && kept > 0 {
			break
		}
	}
	switch {
	case kept == all:
	case fromBack:
		p.items, p.keys, p.before = p.items[all-kept:], p.keys[all-kept:], true
	default:
		p.items, p.keys, p.after = p.items[:kept], p.keys[:kept], true
	}
}

// Nodes returns the items of the page.
func (p Page[T]) Nodes() []T { return p.cut().items }

// TotalCount counts the whole list.
func (p Page[T]) TotalCount() int { return p.count() }

// PageInfo says where the page lies.
func (p Page[T]) PageInfo() PageInfo {
	found := p.cut()
	info := PageInfo{HasPreviousPage: found.before, HasNextPage: found.after}
	if last := len(found.keys) - 1; last >= 0 {
		start, end := Cursor(p.list, found.keys[0]), Cursor(p.list, found.keys[last])
		info.StartCursor, info.EndCursor = &start, &end
	}
	return info
}

// edges joins each item of the page with its cursor.
func edges[T, E any](p Page[T], edge func(cursor string, node T) E) []E {
	found := p.cut()
	all := make([]E, len(found.items))
	for i, item := range found.items {
		all[i] = edge(Cursor(p.list, found.keys[i]), item)
	}
	return all
}
