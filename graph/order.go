package graph

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"isthmus.dev/isthmus/graph/model"
)

// order sorts a list by a text of each item. Items with equal texts keep the order of
// their keys; descending reverses both.
type order[T any] struct {
	name       string
	by         func(T) string
	descending bool
}

// newOrder reads the field and the direction of an orderBy; fields has the text that each field sorts by.
func newOrder[F ~string, T any](field F, direction *model.OrderDirection, fields map[F]func(T) string) order[T] {
	descending := direction != nil && *direction == model.OrderDirectionDesc
	name := " by " + string(field)
	if descending {
		name += ", descending"
	}
	return order[T]{name: name, by: fields[field], descending: descending}
}

// keyed is an item with the text that its place depends on.
type keyed[T any] struct {
	key  string
	item T
}

// page is a page of the list in that order. Its cursors differ from those of other orders.
func (o order[T]) page(list model.List[T], window model.Window) model.Page[T] {
	if o.by == nil {
		return model.NewPage(list, window)
	}
	sorted := model.ListMade(list.Name+o.name, func() (all []keyed[T]) {
		for item := range list.Items {
			key := o.by(item) + "\x00" + list.Key(item)
			if o.descending {
				key = complement(key)
			}
			all = append(all, keyed[T]{key, item})
		}
		slices.SortFunc(all, func(a, b keyed[T]) int { return cmp.Compare(a.key, b.key) })
		return all
	}, func(of keyed[T]) string { return of.key })
	if list.Count != nil {
		sorted.Count = list.Count
	}
	if list.Size != nil {
		sorted.Size, sorted.MaxPage = func(of keyed[T]) int { return list.Size(of.item) }, list.MaxPage
	}
	return model.Shown(model.NewPage(sorted, window), func(of keyed[T]) T { return of.item })
}

// complement reverses the order of texts.
func complement(text string) string {
	out := []byte(text)
	for i := range out {
		out[i] = ^out[i]
	}
	return string(append(out, 0xff)) // a text comes before those that it begins
}

// number writes numbers so that they are sorted as texts.
func number[N int | int64](n N) string { return fmt.Sprintf("%020d", n) }

// inTime are the items, until the operation has ended: a walk that finds little to show would go on behind it. The
// client of a query that has ended gets no part of a list, but learns why (R111).
func inTime[T any](ctx context.Context, all iter.Seq[T]) iter.Seq[T] {
	const between = 64 // looks at the context
	return func(yield func(T) bool) {
		visited := 0
		for item := range all {
			if visited%between == 0 && ctx.Err() != nil {
				return
			}
			visited++
			if !yield(item) {
				return
			}
		}
	}
}

// fitting are the items that fit.
func fitting[T any](all iter.Seq[T], fit func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for item := range all {
			if fit(item) && !yield(item) {
				return
			}
		}
	}
}
