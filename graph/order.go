package graph

import (
	"cmp"
	"fmt"
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

// newOrder reads the field and the direction of an orderBy.
func newOrder[T any](field string, direction *model.OrderDirection, by func(T) string) order[T] {
	descending := direction != nil && *direction == model.OrderDirectionDesc
	name := " by " + field
	if descending {
		name += ", descending"
	}
	return order[T]{name: name, by: by, descending: descending}
}

// ordered is the list in that order. Its cursors differ from those of other orders.
func (o order[T]) ordered(list model.List[T]) model.List[T] {
	if o.by == nil {
		return list
	}
	type keyed struct {
		key  string
		item T
	}
	var all []keyed
	keys := map[string]string{} // by the keys of the list
	for item := range list.Items {
		key := o.by(item) + "\x00" + list.Key(item)
		if o.descending {
			key = complement(key)
		}
		keys[list.Key(item)] = key
		all = append(all, keyed{key, item})
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	return model.List[T]{
		Name: list.Name + o.name, Count: func() int { return len(all) },
		Key: func(item T) string { return keys[list.Key(item)] },
		Items: func(yield func(T) bool) {
			for _, one := range all {
				if !yield(one.item) {
					return
				}
			}
		},
	}
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
