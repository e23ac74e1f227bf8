package schema

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// anyValue is a value of an object.
func anyValue(depth int) *rapid.Generator[any] {
	plain := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.StringMatching(`[ -~]*`).AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Float64().AsAny(),
		rapid.Just[any](nil), rapid.Just[any](map[string]any(nil)), rapid.Just[any]([]any(nil)),
		rapid.SampledFrom([]any{
			"\xff", "\u2028", "\x00\x7f", "<a href=\"&\\\">", 1, int32(7),
			[]string{"<"},
			map[string]string{"b": "1", "a": "\u2029"},
		}),
	}
	if depth > 0 {
		deeper := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(depth - 1) })
		plain = append(plain, rapid.MapOfN(rapid.String(), deeper, 0, 4).AsAny(), rapid.SliceOfN(deeper, 0, 4).AsAny())
	}
	return rapid.OneOf(plain...)
}

// A value is written as encoding/json does, and what cannot be written is refused as there.
func TestPropertyJSONIsThatOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anyValue(3).Draw(t, "value")
		want, refused := json.Marshal(value)
		got, err := JSON(value)
		if (err == nil) != (refused == nil) || err == nil && string(got) != string(want) {
			t.Fatalf("%s, %v is written, and not %s, %v", got, err, want, refused)
		}
	})
}
