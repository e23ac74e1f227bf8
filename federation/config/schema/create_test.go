package schema

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// A new object that the library does not merge comes out as if it had: for objects of every
// kind, bent in every way.
func TestPropertyNewObjectsAreAsTheLibraryMakesThem(t *testing.T) {
	set := load(t)
	objects := corpusObjects(t, set)
	o := ApplyOptions{Manager: "somebody", Now: time.Date(2026, 5, 4, 12, 0, 0, 5, time.FixedZone("", 3600))}
	valid, refused := 0, 0 // of those that are made without the library
	rapid.Check(t, func(t *rapid.T) {
		object, v, _ := drawObject(t, set, objects)
		for range rapid.IntRange(0, 2).Draw(t, "bends") {
			part := rapid.SampledFrom([]string{"spec", "metadata"}).Draw(t, "part")
			object[part] = bend(t, object[part])
		}
		v.clean(object)
		slow := runtime.DeepCopyJSON(object)
		got, done := v.create(object, o)
		if !done {
			if diff := cmp.Diff(slow, object); diff != "" {
				t.Fatalf("what is left to the library was changed: %s", diff)
			}
			return
		}
		want, err := v.merge(nil, slow, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Problems) == 0 {
			valid++
		} else {
			refused++
		}
		byText := cmpopts.SortSlices(func(a, b Problem) bool { return a.Field+a.Message < b.Field+b.Message })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), byText); diff != "" {
			t.Fatalf("(-library +quick): %s", diff)
		}
	})
	bothWays(t, valid, refused)
}

// R63: a new object is not merged with nothing.
func TestR63CreatingIsFrugal(t *testing.T) {
	set := load(t)
	object, o := partner(), ApplyOptions{Manager: "somebody", Now: noon}
	if r, err := set.Apply(nil, object, o); err != nil || r.Object == nil {
		t.Fatal(r, err)
	}
	const most = 25_000 * allowance
	if got := bytesPerRun(func() { _, _ = set.Apply(nil, object, o) }); got > most {
		t.Errorf("creating an object takes %d bytes, at most %d are expected", got, most)
	}
}
