package listwatch

import (
	"testing"

	"isthmus.dev/isthmus/federation"
)

// thing is an object of a test.
type thing struct {
	name  string
	value int
}

func (t thing) key() Key { return Key{Name: t.name} }

// news are the keys that changed; an empty one means all.
type news []Key

func (n *news) Changed(k Key) { *n = append(*n, k) }
func (n *news) ChangedAll()   { *n = append(*n, Key{}) }

// TestG74AMirrorIsWhatWasReadLast: its readers find what came last, and are notified once it is there.
func TestG74AMirrorIsWhatWasReadLast(t *testing.T) {
	var heard news
	share := NewBudget(federation.Limits{}, nil).Share()
	m := NewMirror(share, Resource[thing]{Size: func(thing) int64 { return 1 }}, thing.key, &heard, func(error) {})
	if all, listed := m.Keys(), m.Complete(); len(all) > 0 || listed {
		t.Errorf("before a list there are %v, %v", all, listed)
	}
	m.Listed(t.Context(), []thing{{"a", 1}, {"b", 1}}, 1)
	m.Set(t.Context(), thing{"b", 2})
	m.Deleted(t.Context(), Key{Name: "a"})
	if all, listed := m.Keys(), m.Complete(); len(all) != 1 || !listed {
		t.Errorf("there are %v, %v", all, listed)
	}
	if b, has := m.Get(Key{Name: "b"}); !has || b.value != 2 {
		t.Errorf("b is %v, %v", b, has)
	}
	if _, has := m.Get(Key{Name: "a"}); has {
		t.Error("a was deleted and is there")
	}
	m.Listed(t.Context(), nil, 1)
	if all, listed := m.Keys(), m.Complete(); len(all) > 0 || !listed {
		t.Errorf("after an empty list there are %v, %v", all, listed)
	}
	if want := (news{{}, {Name: "b"}, {Name: "a"}, {}}); len(heard) != len(want) || heard[1] != want[1] || heard[2] != want[2] {
		t.Errorf("notified of %v, want %v", heard, want)
	}
}
