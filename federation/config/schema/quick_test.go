package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// An object that is taken to be plain is left as it is by all that Kubernetes does when it
// reads an object: for objects of every kind, bent in every way.
func TestPropertyPlainObjectsReadAsTheyAre(t *testing.T) {
	set := load(t)
	objects := corpusObjects(t, set)
	plain, other := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		object, v, c := drawObject(t, set, objects)
		for range rapid.IntRange(0, 3).Draw(t, "bends") {
			object["spec"] = bend(t, object["spec"])
		}
		if !c.readsAsItIs(object) {
			other++
			return
		}
		plain++
		before, whole := runtime.DeepCopyJSON(object), *c
		whole.embeds = true // nothing is taken to be plain
		if _, problems := v.decode(&whole, object); len(problems) > 0 {
			t.Fatalf("problems %v of %v", problems, before)
		}
		if diff := cmp.Diff(before, object); diff != "" {
			t.Fatalf("reading changes it: %s", diff)
		}
		if twice := listtype.ValidateListSetsAndMaps(nil, c.structural, object); len(twice) > 0 && !c.shared {
			t.Fatalf("the library finds %v", twice)
		}
		if problems := c.validator.Validate(object); !problems.IsValid() {
			t.Fatalf("the library finds %v", problems.Errors)
		}
	})
	bothWays(t, plain, other)
}

// Metadata that is taken to be plain is read as all other is.
func TestPropertyPlainMetadataReadsAsOther(t *testing.T) {
	set := load(t)
	objects := corpusObjects(t, set)
	plain, other := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		object, v, _ := drawObject(t, set, objects)
		v.clean(object)
		for range rapid.IntRange(0, 2).Draw(t, "bends") {
			object["metadata"] = bend(t, object["metadata"])
		}
		dropNulls(object)
		if plainMetadata(object["metadata"]) == nil {
			other++
			return
		}
		plain++
		slow := runtime.DeepCopyJSON(object)
		meta, want := v.checkMetadata(slow)
		if len(want) == 0 {
			if err := setMetadata(slow, meta); err != nil {
				t.Fatal(err)
			}
		}
		got := v.readMetadata(object)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
			cmpopts.SortSlices(func(a, b Problem) bool { return a.Field+a.Message < b.Field+b.Message })); diff != "" {
			t.Fatalf("problems (-other +plain): %s", diff)
		}
		if diff := cmp.Diff(slow, object); diff != "" && len(want) == 0 {
			t.Fatalf("it is written (-other +plain): %s", diff)
		}
	})
	bothWays(t, plain, other)
}
