package smallmap_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/internal/smallmap"
)

// TestPropertyAMapIsAMap: after any history, a map has what a map of Go has, however many keys
// that is; and so has a clone, whatever becomes of the other.
func TestPropertyAMapIsAMap(t *testing.T) {
	keys := rapid.IntRange(0, 40)
	rapid.Check(t, func(t *rapid.T) {
		var m, clone smallmap.Map[int, string]
		want, cloned := map[int]string{}, map[int]string{}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			key := keys.Draw(t, "key")
			switch rapid.IntRange(0, 12).Draw(t, "step") {
			case 0:
				m.Delete(key)
				delete(want, key)
			case 1:
				above := func(k int, _ string) bool { return k > key }
				m.DeleteFunc(above)
				maps.DeleteFunc(want, above)
			case 2:
				clone, cloned = m.Clone(), maps.Clone(want)
			case 3:
				m, want = m.Emptied(), map[int]string{}
			default:
				value := rapid.StringN(0, 2, 2).Draw(t, "value")
				m.Put(key, value)
				want[key] = value
			}
			same(t, m, want)
			same(t, clone, cloned)
		}
	})
}

func same(t *rapid.T, m smallmap.Map[int, string], want map[int]string) {
	if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
		t.Fatalf("%d keys, %v, want %v", m.Len(), got, want)
	}
	for key := range 41 {
		got, has := m.Get(key)
		if is, exists := want[key]; got != is || has != exists || m.Has(key) != exists {
			t.Fatalf("%d: %q, %t, want %q, %t", key, got, has, is, exists)
		}
	}
}

// TestAllStopsWhenItIsTold, in a row and in a map.
func TestAllStopsWhenItIsTold(t *testing.T) {
	for _, keys := range []int{3, 30} {
		var set smallmap.Set[int]
		for i := range keys {
			smallmap.Add(&set, i)
		}
		seen := 0
		for range set.All() {
			seen++
			if seen == 2 {
				break
			}
		}
		if seen != 2 {
			t.Errorf("%d keys: %d were seen, want 2", keys, seen)
		}
	}
}

// TestFewKeysTakeFewBytes: a set of one key takes two allocations, and one that exists none.
func TestFewKeysTakeFewBytes(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { smallmap.Add(new(smallmap.Set[string]), "a") }); n > 3 {
		t.Errorf("a set of one key takes %v allocations", n)
	}
	var set smallmap.Set[string]
	smallmap.Add(&set, "a")
	if n := testing.AllocsPerRun(100, func() { smallmap.Add(&set, "a") }); n != 0 {
		t.Errorf("a key that is there takes %v allocations", n)
	}
}
