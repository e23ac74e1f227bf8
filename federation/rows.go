package federation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Rows has a row for each kind of configuration object. The file of each kind adds its own,
// so that there is no list of kinds beside the files.
type Rows[R any] map[Kind]R

// Add panics if the kind has a row: it is called at the program's start.
func (rows Rows[R]) Add(kind Kind, row R) {
	if _, twice := rows[kind]; twice {
		panic(fmt.Sprintf("the kind %s has two rows", kind))
	}
	rows[kind] = row
}

// Kinds are those that have a row, by group and name.
func (rows Rows[R]) Kinds() []Kind {
	return slices.SortedFunc(maps.Keys(rows),
		func(a, b Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name)) })
}
