package filewatch

import (
	"crypto/sha256"
	"iter"
	"maps"
	"slices"
)

// Looks compares each look at named files with the look before it, since a file that is
// being replaced is half-written for a moment, or missing: what two looks in a row find
// alike is whole, and what two in a row do not find is gone. The zero value is before the
// first look.
type Looks struct {
	before, now map[string]fileState
}

// fileState is what a look found under a name.
type fileState struct {
	sum    [sha256.Size]byte
	absent bool
}

// Saw says what the look finds under a name, and reports whether the one before found the
// same.
func (l *Looks) Saw(name string, sum [sha256.Size]byte) (same bool) {
	if l.now == nil {
		l.now = map[string]fileState{}
	}
	l.now[name] = fileState{sum: sum}
	before, known := l.before[name]
	return known && before == l.now[name]
}

// End ends a look. It tells what only the look before found, and what neither did, though
// an earlier one did.
func (l *Looks) End() (missing, gone []string) {
	next := l.now
	if next == nil {
		next = map[string]fileState{}
	}
	for name, before := range l.before {
		switch _, there := next[name]; {
		case there:
		case before.absent:
			gone = append(gone, name)
		default:
			missing = append(missing, name)
			next[name] = fileState{absent: true}
		}
	}
	l.before, l.now = next, nil
	slices.Sort(missing)
	slices.Sort(gone)
	return missing, gone
}

// Names are those that the last look, or only the one before it, found.
func (l *Looks) Names() iter.Seq[string] { return maps.Keys(l.before) }
