package btree

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPropertyDiffTellsOneMapFromAnother: whatever was changed between two maps, the
// difference turns one into the other, and its keys are in order.
func TestPropertyDiffTellsOneMapFromAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, keys := rapid.IntRange(0, 3000).Draw(t, "size"), rapid.IntRange(1, 4000).Draw(t, "keys")
		var before Txn[int]
		for i := range size {
			before.Set(fmt.Sprint(i*7919%keys), i)
		}
		a := before.Commit()
		b := a
		for range rapid.IntRange(0, 3).Draw(t, "commits") {
			change := b.Txn()
			for range rapid.IntRange(0, 400).Draw(t, "changes") {
				key := fmt.Sprint(rapid.IntRange(0, keys).Draw(t, "key"))
				if rapid.Bool().Draw(t, "delete") {
					change.Delete(key)
				} else {
					change.Set(key, -1)
				}
			}
			b = change.Commit()
		}
		if rapid.Bool().Draw(t, "back") {
			a, b = b, a
		}
		got, last := content(a), ""
		Diff(a, b, func(key string, before, after *int) {
			if key <= last && last != "" {
				t.Fatalf("%q comes after %q", key, last)
			}
			last = key
			if old, had := got[key]; had != (before != nil) || had && old != *before {
				t.Fatalf("%q had %v %v, not %v", key, old, had, before)
			}
			if after == nil {
				delete(got, key)
			} else {
				got[key] = *after
			}
		})
		if diff := cmp.Diff(content(b), got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func content(m Map[int]) map[string]int { return maps.Collect(m.From("")) }

// TestDiffCostsWhatChanged: of what the maps share, at most the leaves beside the change
// are visited.
func TestDiffCostsWhatChanged(t *testing.T) {
	var all Txn[int]
	for i := range 20_000 {
		all.Set(fmt.Sprintf("%06d", i), i)
	}
	before := all.Commit()
	change := before.Txn()
	change.Set("010000", -1)
	change.Delete("015000")
	change.Set("0050005", -1)
	visited := 0
	Diff(before, change.Commit(), func(string, *int, *int) { visited++ })
	if visited < 3 || visited > 6*maxItems {
		t.Errorf("%d keys are visited for 3 changes", visited)
	}
}
