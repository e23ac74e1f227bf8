package transport

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// TestR63AnswersAreWrittenInParts: together they are what one JSON document of them
// would be, and the data are not copied.
func TestR63AnswersAreWrittenInParts(t *testing.T) {
	failed := gqlerror.List{{Message: `no "<x>"`, Extensions: map[string]any{"code": "NOT_FOUND"}}}
	for name, e := range map[string]envelope{
		"data":                             {Data: json.RawMessage(`{"a":1}`)},
		"null":                             {Data: json.RawMessage("null"), Errors: failed},
		"errors":                           {Errors: failed},
		"data and errors":                  {Data: json.RawMessage(`{"a":null}`), Errors: failed},
		"data and extensions":              {Data: json.RawMessage(`{}`), Extensions: map[string]any{"revision": "7"}},
		"data, errors and extensions":      {Data: json.RawMessage(`{}`), Errors: failed, Extensions: map[string]any{"revision": "7"}},
		"nothing":                          {},
		"extensions without anything else": {Extensions: map[string]any{"revision": "7"}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			parts, err := e.parts()
			if err != nil {
				t.Fatal(err)
			}
			var got, wanted any
			text := bytes.Join(parts, nil)
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			_ = json.Unmarshal(want, &wanted) // json.Marshal wrote it
			if a, b := marshalled(t, got), marshalled(t, wanted); !bytes.Equal(a, b) {
				t.Errorf("%s, want %s", a, b)
			}
			if len(e.Data) > 0 && &parts[len(parts)-2][0] != &e.Data[0] {
				t.Error("the data were copied")
			}
		})
	}
	if _, err := (envelope{Data: json.RawMessage(`{"a":NaN}`)}).parts(); err == nil {
		t.Error("data that are not JSON are written")
	}
}

func marshalled(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
