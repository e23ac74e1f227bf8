package schema

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// corpusObjects are the objects of the corpus whose kind and version are known.
func corpusObjects(t *testing.T, set *Set) (objects []map[string]any) {
	t.Helper()
	for _, sort := range []string{"valid", "invalid"} {
		for _, file := range corpus(t, sort) {
			object, _ := read(t, file)
			if _, problem := set.versionOf(object); problem == nil {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

// drawObject is one of the objects, with its version and the version's schema.
func drawObject(t *rapid.T, set *Set, objects []map[string]any) (map[string]any, *version, *compiled) {
	object := runtime.DeepCopyJSON(rapid.SampledFrom(objects).Draw(t, "object"))
	v, _ := set.versionOf(object)
	c, err := v.schema()
	if err != nil {
		t.Fatal(err)
	}
	return object, v, c
}

// bothWays fails a property that met one case of two only. By chance, few draws do.
func bothWays(t *testing.T, one, other int) {
	t.Helper()
	const many = 500
	if one+other >= many && (one == 0 || other == 0) {
		t.Errorf("it was drawn %d times one way, %d times the other: the test shows nothing", one, other)
	}
}

// The fast check must agree with the library's: for objects of every kind, bent
// in every way.
func TestPropertyConformsAsTheLibrarySays(t *testing.T) {
	set := load(t)
	objects := corpusObjects(t, set)
	conform, differ := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		object, _, c := drawObject(t, set, objects)
		var bent any = object
		for range rapid.IntRange(0, 3).Draw(t, "bends") {
			bent = bend(t, bent)
		}
		want := c.validator.Validate(bent)
		if got := c.whole().conforms(bent); got != want.IsValid() {
			t.Fatalf("conforms is %v, the library says %v of %v", got, want.Errors, bent)
		}
		if want.IsValid() {
			conform++
		} else {
			differ++
		}
	})
	bothWays(t, conform, differ)
}

// bend changes, adds or removes something somewhere in a value.
func bend(t *rapid.T, value any) any {
	here := rapid.IntRange(0, 3).Draw(t, "here") == 0
	switch value := value.(type) {
	case map[string]any:
		if names := slices.Sorted(maps.Keys(value)); !here && len(names) > 0 {
			name := rapid.SampledFrom(names).Draw(t, "member")
			value[name] = bend(t, value[name])
			return value
		}
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			value["unknown"] = odd(t)
			return value
		case 1:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				delete(value, name)
				break
			}
			return value
		}
	case []any:
		if !here && len(value) > 0 {
			i := rapid.IntRange(0, len(value)-1).Draw(t, "item")
			value[i] = bend(t, value[i])
			return value
		}
		if rapid.Bool().Draw(t, "longer") {
			return append(value, value...)
		}
	}
	return odd(t)
}

func odd(t *rapid.T) any {
	return rapid.SampledFrom([]func() any{
		func() any { return nil },
		func() any { return true },
		func() any { return "" },
		func() any { return "x" },
		func() any { return "1s" },
		func() any { return fmt.Sprintf("%0300d", 1) },
		func() any { return int64(0) },
		func() any { return int64(-70000) },
		func() any { return 0.5 },
		func() any { return 2.0 },
		func() any { return map[string]any{} },
		func() any { return []any{} },
		func() any { return map[string]any{"exact": "x", "number": int64(80)} },
		func() any { return []any{"x", int64(1)} },
	}).Draw(t, "odd")()
}
