// Package model has the types of the public contract as Go values. Those
// written by hand stand over the domain's values and read what is asked for,
// when it is asked for; the plain ones are generated.
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

// List is a list in the order of its keys, which are unique in it.
type List[T any] struct {
	Kind  string      // Tells this list's cursors from those of others.
	Items iter.Seq[T] // May begin behind the window's After.
	Key   func(T) string
	Count func() int // nil: Items are counted, all of them.
}

// Page is a window on a list. It is cut and counted once, when first asked for.
type Page[T any] struct {
	cut   func() piece[T]
	count func() int
}

type piece[T any] struct {
	items         []T
	cursors       []string
	before, after bool
}

// NewPage makes the page of list that the window shows.
func NewPage[T any](list List[T], window Window) Page[T] {
	count := list.Count
	if count == nil {
		count = func() int {
			total := 0
			for range list.Items {
				total++
			}
			return total
		}
	}
	return Page[T]{
		cut:   sync.OnceValue(func() piece[T] { return cut(list, window) }),
		count: sync.OnceValue(count),
	}
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
			found.items, found.cursors = found.items[1:], found.cursors[1:]
		}
		found.items = append(found.items, item)
		found.cursors = append(found.cursors, Cursor(list.Kind, key))
	}
	return found
}

// Nodes returns the items of the page.
func (p Page[T]) Nodes() []T { return p.cut().items }

// TotalCount counts the whole list.
func (p Page[T]) TotalCount() int { return p.count() }

// PageInfo says where the page lies.
func (p Page[T]) PageInfo() PageInfo {
	found := p.cut()
	info := PageInfo{HasPreviousPage: found.before, HasNextPage: found.after}
	if last := len(found.cursors) - 1; last >= 0 {
		info.StartCursor, info.EndCursor = &found.cursors[0], &found.cursors[last]
	}
	return info
}

// edges joins each item of the page with its cursor.
func edges[T, E any](p Page[T], edge func(cursor string, node T) E) []E {
	found := p.cut()
	all := make([]E, len(found.items))
	for i, item := range found.items {
		all[i] = edge(found.cursors[i], item)
	}
	return all
}
