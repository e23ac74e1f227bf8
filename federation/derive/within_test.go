package derive_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/derive"
	"isthmus.dev/isthmus/internal/smallmap"
)

// TestPropertyAnOuterIndexKnowsWhatItsIndexesRead: after each of a random history of
// computations, OfObject of the outer index returns the indexes that a look at each of
// them finds, and none that is closed.
func TestPropertyAnOuterIndexKnowsWhatItsIndexesRead(t *testing.T) {
	objects := []federation.ObjectKey{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	names := []string{"x", "y"}
	rapid.Check(t, func(t *rapid.T) {
		outer := derive.NewIndex[int]()
		open, read := map[int]*derive.Index[string]{}, map[string]federation.Deps{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := rapid.IntRange(0, 2).Draw(t, "index")
			inner, is := open[id]
			switch {
			case !is:
				open[id] = derive.Within[int, string](outer, id)
			case rapid.IntRange(0, 9).Draw(t, "closes") == 0:
				inner.Close()
				delete(open, id)
				for _, name := range names {
					delete(read, fmt.Sprint(id, name))
				}
			default:
				name := rapid.SampledFrom(names).Draw(t, "value")
				now := federation.Deps{}
				for _, o := range rapid.SliceOfDistinct(rapid.SampledFrom(objects),
					func(o federation.ObjectKey) string { return o.Name }).Draw(t, "objects") {
					smallmap.Add(&now.Objects, o)
				}
				at := fmt.Sprint(id, name)
				inner.Replace(name, read[at], now)
				read[at] = now
			}
			for _, o := range objects {
				var want []int
				for id, x := range open {
					if len(x.OfObject(o)) > 0 {
						want = append(want, id)
					}
				}
				slices.Sort(want)
				if got := slices.Sorted(slices.Values(outer.OfObject(o))); !slices.Equal(got, want) {
					t.Fatalf("%s: the outer index has %v, its indexes %v", o.Name, got, want)
				}
			}
		}
	})
}
