package transport_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"isthmus.dev/isthmus/graph/transport"
)

// TestRefusalsNameTheirPlace: the path of the field, the argument, and where that is
// in the document. Names that are nearly right are suggested, since introspection is
// allowed.
func TestRefusalsNameTheirPlace(t *testing.T) {
	handler := newHandler(t)
	for name, row := range map[string]struct {
		query     string
		variables string
		path      string
		argument  string
		at        string
		message   string
	}{
		"misspelt field": {"{helo}", "{}", "[helo]", "", "1:2", `Cannot query field "helo" on type "Query". Did you mean "hello"?`},
		"misspelt field below": {
			"{hello\n a: items { nodes { idd } }}", "{}", "[a nodes idd]", "", "2:21",
			`Cannot query field "idd" on type "Item". Did you mean "id"?`,
		},
		"misspelt argument": {
			"{items(frist: 1) { totalCount }}", "{}", "[items]", "frist", "1:2",
			`Unknown argument "frist" on field "Query.items". Did you mean "first" or "last"?`,
		},
		"type of an argument": {
			"{items(first: true) { totalCount }}", "{}", "[items]", "first", "1:15",
			"Int cannot represent non-integer value: true",
		},
		"size of a page": {
			"{b: items(first: 501) { totalCount }}", "{}", "[b]", "first", "1:11",
			"first: the page of items has a size from 1 to 500",
		},
		"type of a variable": {
			"query($n: Int) {items(first: $n) { totalCount }}", `{"n": "x"}`, "[]", "$n", "1:7",
			"variable.n must be an Int: a whole number of at most 32 bits",
		},
		"size by a variable": {
			"query($n: Int) {items(first: $n) { totalCount }}", `{"n": 0}`, "[items]", "first", "1:23",
			"first: the page of items has a size from 1 to 500",
		},
		"in a fragment":        {"query a {x: items { ...F }} fragment G on Item { id } fragment F on ItemConnection { totalCount nodes { b: id(frist: 1) ...G } }", "{}", "[x nodes b]", "frist", "1:105", `Unknown argument "frist" on field "Item.id".`},
		"in a nested fragment": {"fragment G on Item { idd } fragment F on ItemConnection { nodes { ... on Item { ...G } } } query a {x: items { ...F }}", "{}", "[x nodes idd]", "", "1:22", `Cannot query field "idd" on type "Item". Did you mean "id"?`},
		"in the operation": {
			"fragment F on Item { id } query a {x: items(first: true) { nodes { ...F } }}", "{}", "[x]", "first", "1:52",
			"Int cannot represent non-integer value: true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, handler, postBody(fmt.Sprintf(`{"query":%q,"variables":%s}`, row.query, row.variables)))
			var answer struct {
				Errors []struct {
					Message    string
					Path       []any
					Locations  []struct{ Line, Column int }
					Extensions struct{ Argument string }
				}
			}
			if err := json.Unmarshal([]byte(got.body), &answer); err != nil || len(answer.Errors) == 0 || len(answer.Errors[0].Locations) == 0 {
				t.Fatalf("got %s", got.body)
			}
			e := answer.Errors[0]
			at := fmt.Sprintf("%d:%d", e.Locations[0].Line, e.Locations[0].Column)
			if e.Message != row.message || fmt.Sprint(e.Path) != row.path || e.Extensions.Argument != row.argument || at != row.at {
				t.Errorf("got %s, want %q at %s %q %s", got.body, row.message, row.path, row.argument, row.at)
			}
		})
	}
}

// TestHiddenSchemaIsNotTold: without introspection, errors do not suggest names either.
// Operations, also those that ask for __typename, are answered.
func TestHiddenSchemaIsNotTold(t *testing.T) {
	handler := transport.New(newFakeSchema(t), transport.Options{Log: slog.New(slog.DiscardHandler), HideSchema: true})
	for query, want := range map[string]struct {
		status int
		code   string
	}{
		"{hello}":                       {http.StatusOK, ""},
		"{hello __typename}":            {http.StatusOK, ""},
		"{__schema{types{name}}}":       {http.StatusForbidden, "FORBIDDEN"},
		`{t:__type(name:"Item"){name}}`: {http.StatusForbidden, "FORBIDDEN"},
		"{...f} fragment f on Query{__schema{queryType{name}}}": {http.StatusForbidden, "FORBIDDEN"},
		"{helo}":                           {http.StatusUnprocessableEntity, "GRAPHQL_VALIDATION_FAILED"},
		"{...f} fragment f on Quer{hello}": {http.StatusUnprocessableEntity, "GRAPHQL_VALIDATION_FAILED"},
		"{items(frist: 1) { totalCount }}": {http.StatusUnprocessableEntity, "GRAPHQL_VALIDATION_FAILED"},
	} {
		got := send(t, handler, post(query))
		if got.status != want.status || got.code() != want.code || strings.Contains(got.body, "Did you mean") {
			t.Errorf("%s gets %d %s", query, got.status, got.body)
		}
	}
}
