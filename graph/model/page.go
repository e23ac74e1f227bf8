// Package model has the types of the public contract as Go values. Types written by hand
// wrap the domain's values and compute a field when it is requested; the plain ones are
// generated.
package model

import (
	"iter"
	"slices"
	"sort"
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
	Count func() int                     // nil: Items are counted, all of them.
	From  func(after string) iter.Seq[T] // The items behind a key, which earlier ones may precede; nil: all Items.
	// Back has the items before a key from the last one on, all of them for "". Later ones may
	// precede them. nil: all Items are visited for a page from the back.
	Back func(before string) iter.Seq[T]
	// Size is what an item counts for; a page has items of at most MaxPage together, and
	// at least one. nil: any page will do.
	Size    func(T) int
	MaxPage int
}

// ListOf is the list of items that are in the order of their keys already.
func ListOf[T any](name string, all []T, key func(T) string) List[T] {
	return ListMade(name, func() []T { return all }, key)
}

// ListMade is ListOf for items that are made when they are first needed.
func ListMade[T any](name string, items func() []T, key func(T) string) List[T] {
	items = sync.OnceValue(items)
	place := func(all []T, of string) int {
		return sort.Search(len(all), func(i int) bool { return key(all[i]) >= of })
	}
	return List[T]{
		Name: name, Key: key, Count: func() int { return len(items()) },
		Items: func(yield func(T) bool) { slices.Values(items())(yield) },
		From: func(after string) iter.Seq[T] {
			all := items()
			return slices.Values(all[place(all, after):])
		},
		Back: func(before string) iter.Seq[T] {
			all := items()
			if before != "" {
				all = all[:place(all, before)]
			}
			return func(yield func(T) bool) {
				for _, item := range slices.Backward(all) {
					if !yield(item) {
						return
					}
				}
			}
		},
	}
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
	return Page[T]{
		list:  list.Name,
		cut:   sync.OnceValue(func() piece[T] { return cut(list, window) }),
		count: sync.OnceValue(count),
	}
}

// Shown is the page of what its items are shown as. Only items of the page are made into that.
func Shown[T, U any](of Page[T], show func(T) U) Page[U] {
	return Page[U]{list: of.list, count: of.count, cut: sync.OnceValue(func() piece[U] {
		found := of.cut()
		shown := piece[U]{keys: found.keys, before: found.before, after: found.after, items: make([]U, len(found.items))}
		for i, item := range found.items {
			shown.items[i] = show(item)
		}
		return shown
	})}
}

// Together is the page whose items are changed together, when they are first asked for.
func Together[T any](of Page[T], change func([]T)) Page[T] {
	return Page[T]{list: of.list, count: of.count, cut: sync.OnceValue(func() piece[T] {
		found := of.cut()
		found.items = slices.Clone(found.items)
		change(found.items)
		return found
	})}
}

func length[T any](items iter.Seq[T]) int {
	total := 0
	for range items {
		total++
	}
	return total
}

func cut[T any](list List[T], window Window) piece[T] {
	var found piece[T]
	if window.Last != nil {
		found = cutBack(list, window, *window.Last)
	} else {
		found = cutFront(list, window)
	}
	if list.Size != nil {
		found.lighten(list, window.Last != nil)
	}
	return found
}

func cutFront[T any](list List[T], window Window) piece[T] {
	found := piece[T]{before: window.After != ""}
	size := DefaultPage
	if window.First != nil {
		size = *window.First
	}
	items := list.Items
	if list.From != nil && window.After != "" {
		items = list.From(window.After)
	}
	for item := range items {
		key := list.Key(item)
		if window.After != "" && key <= window.After {
			continue
		}
		if window.Before != "" && key >= window.Before || len(found.items) == size {
			found.after = true
			break
		}
		found.add(item, key)
	}
	return found
}

// cutBack makes a page from the back. Where the list has no way there, it is turned around.
func cutBack[T any](list List[T], window Window, size int) piece[T] {
	if list.Back == nil {
		list.Back = ListOf(list.Name, slices.Collect(list.Items), list.Key).Back
	}
	found := piece[T]{after: window.Before != ""}
	for item := range list.Back(window.Before) {
		key := list.Key(item)
		if window.Before != "" && key >= window.Before {
			continue
		}
		if window.After != "" && key <= window.After || len(found.items) == size {
			found.before = true
			break
		}
		found.add(item, key)
	}
	slices.Reverse(found.items)
	slices.Reverse(found.keys)
	return found
}

func (p *piece[T]) add(item T, key string) {
	p.items, p.keys = append(p.items, item), append(p.keys, key)
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
