package noted

import (
	"iter"

	"isthmus.dev/isthmus/internal/btree"
)

const nul = "\x00"

// note says that the value read the group.
type note struct{ group, value string }

// start is what the keys of all notes of the group begin with.
func start(name, group string) string { return name + nul + group + nul }

// Notes tell what the values of a version were computed from. They are never changed.
type Notes struct {
	readers btree.Map[note]            // map, group, value
	values  btree.Map[map[string]note] // value: what it read
}

// affected calls mark for each value that read the group.
func (n Notes) affected(name, group string, mark func(value string)) {
	n.readers.WalkPrefix(start(name, group), func(_ string, one note) bool {
		if one.group == group {
			mark(one.value)
		}
		return false
	})
}

// hasAny reports whether any value read anything of the map.
func (n Notes) hasAny(name string) (found bool) {
	n.readers.WalkPrefix(name+nul, func(string, note) bool { found = true; return true })
	return found
}

// Groups yields the groups of the map that any value read, each once, sorted.
func (n Notes) Groups(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		begun, latest := false, ""
		n.readers.WalkPrefix(name+nul, func(_ string, one note) bool {
			if begun && one.group == latest {
				return false
			}
			begun, latest = true, one.group
			return !yield(latest)
		})
	}
}

// Txn are Notes in the making.
type Txn struct {
	readers btree.Txn[note]
	values  btree.Txn[map[string]note]
}

// Txn begins a change of the notes.
func (n Notes) Txn() Txn { return Txn{readers: n.readers.Txn(), values: n.values.Txn()} }

// Commit returns the notes as they are now.
func (t *Txn) Commit() Notes { return Notes{readers: t.readers.Commit(), values: t.values.Commit()} }

// Replace notes that the value was computed from what the reader read, and from nothing
// else. The reader must not be used afterwards.
func (t *Txn) Replace(value string, r Reader) {
	before, _ := t.values.Get(value)
	for at := range before {
		if _, stays := r.notes[at]; !stays {
			t.readers.Delete(at + value)
		}
	}
	for at, read := range r.notes {
		if _, noted := before[at]; !noted {
			t.readers.Set(at+value, note{group: read.group, value: value})
		}
	}
	if len(r.notes) == 0 {
		t.values.Delete(value)
		return
	}
	t.values.Set(value, r.notes)
}
