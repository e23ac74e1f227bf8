package btree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A map is what a plain map is after the same writes, and no map changes when a
// later one is made from it.
func TestPropertyBehavesLikeAMapAndNeverChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var m Map[int]
		want := map[string]int{}
		type version struct {
			m    Map[int]
			want map[string]int
		}
		var versions []version
		for range 60 {
			txn := m.Txn()
			for range random.IntN(100) {
				key := fmt.Sprintf("%d/%d", random.IntN(5), random.IntN(500))
				was, had := want[key]
				var old int
				var found bool
				if random.IntN(100) < 55-int(seed%3)*10 {
					v := random.Int()
					old, found = txn.Set(key, v)
					want[key] = v
				} else {
					old, found = txn.Delete(key)
					delete(want, key)
				}
				if old != was || found != had {
					t.Fatalf("seed %d, %s: the write returned %d %t, want %d %t", seed, key, old, found, was, had)
				}
			}
			m = txn.Commit()
			versions = append(versions, version{m, maps.Clone(want)})
		}
		for _, v := range versions {
			mustEqual(t, v.m, v.want)
		}
	}
}

func mustEqual(t *testing.T, m Map[int], want map[string]int) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	mustYield(t, m, "", keys)
	if m.Len() != len(want) {
		t.Fatalf("the map has %d entries, want %d", m.Len(), len(want))
	}
	for _, prefix := range []string{"", "0/", "2/1", "4/49", "x"} {
		var found []string
		m.WalkPrefix(prefix, func(key string, v int) bool {
			if got, ok := m.Get(key); !ok || got != v || v != want[key] {
				t.Fatalf("%s is %d, %t and %d in a walk, want %d", key, got, ok, v, want[key])
			}
			found = append(found, key)
			return false
		})
		some := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !strings.HasPrefix(k, prefix) })
		if !slices.Equal(found, some) {
			t.Fatalf("with prefix %q the map has %v, want %v", prefix, found, some)
		}
	}
	for _, from := range []string{"1/", "2/250", "3/499x", "9"} {
		i, _ := slices.BinarySearch(keys, from)
		mustYield(t, m, from, keys[i:])
		mustYieldBack(t, m, from, keys[:i])
	}
	mustYieldBack(t, m, "", keys)
}

// mustYieldBack expects the entries before the key, the last one first, in a whole walk and in one that is left halfway.
func mustYieldBack(t *testing.T, m Map[int], before string, want []string) {
	t.Helper()
	for _, most := range []int{len(want) + 1, len(want) / 2} {
		var found []string
		for key, v := range m.Before(before) {
			if got, _ := m.Get(key); got != v {
				t.Fatalf("before %q the entry %q is %d, want %d", before, key, v, got)
			}
			if len(found) == most {
				break
			}
			found = append(found, key)
		}
		slices.Reverse(found)
		if !slices.Equal(found, want[max(len(want)-most, 0):]) {
			t.Fatalf("before %q the last %d entries are %v, want those of %v", before, most, found, want)
		}
	}
}

func mustYield(t *testing.T, m Map[int], from string, want []string) {
	t.Helper()
	var found []string
	for key := range m.From(from) {
		found = append(found, key)
	}
	if !slices.Equal(found, want) {
		t.Fatalf("from %q the map has %v, want %v", from, found, want)
	}
	for range m.From(from) {
		break // a reader may stop
	}
}

// Deleting everything leaves nothing behind, in whatever order.
func TestEmptiesAgain(t *testing.T) {
	t.Parallel()
	for _, step := range []int{1, 7, 1999} {
		txn := Map[int]{}.Txn()
		for i := range 2000 {
			txn.Set(fmt.Sprint(i), i)
		}
		m := txn.Commit()
		for i := range 2000 {
			txn.Delete(fmt.Sprint(i * step % 2000))
		}
		if empty := txn.Commit(); empty.root != nil || empty.Len() != 0 || m.Len() != 2000 {
			t.Fatalf("step %d: %d of %d entries are left", step, empty.Len(), m.Len())
		}
	}
}

// TestR63NodesHaveLittleRoom: most nodes stay as they are for long, whichever way their
// keys came, and must not keep room for many more.
func TestR63NodesHaveLittleRoom(t *testing.T) {
	t.Parallel()
	var m Map[int]
	for run := range 4 { // each lands among the keys of those before
		txn := m.Txn()
		for i := range 5000 {
			txn.Set(fmt.Sprint("key-", run*5000+i), i)
		}
		m = txn.Commit()
	}
	txn := m.Txn()
	for i := range 15000 {
		txn.Delete(fmt.Sprint("key-", i))
	}
	m = txn.Commit()
	var check func(n *node[int])
	check = func(n *node[int]) {
		for _, room := range []int{cap(n.keys), cap(n.vals), cap(n.kids)} {
			if room > maxItems+1 {
				t.Fatalf("a node of %d keys has room for %d", len(n.keys), room)
			}
		}
		for _, kid := range n.kids {
			check(kid)
		}
	}
	check(m.root)
}
