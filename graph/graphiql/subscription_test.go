//go:build browser

package graphiql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/graph/graphiql"
	"isthmus.dev/isthmus/graph/transport"
)

// ticking answers a subscription with three numbers.
type ticking struct{ schema *ast.Schema }

func (s ticking) Schema() *ast.Schema { return s.schema }

func (ticking) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

func (ticking) Exec(context.Context) graphql.ResponseHandler {
	sent := 0
	return func(context.Context) *graphql.Response {
		sent++
		if sent > 3 {
			return nil
		}
		data, _ := json.Marshal(map[string]int{"ticks": 7000 + sent})
		return &graphql.Response{Data: data}
	}
}

// editorOver serves the editor beside the hub's transport, which answers all but
// the introspection.
func editorOver(t *testing.T) string {
	t.Helper()
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: "type Query { greeting: String } type Subscription { ticks(after: String): Int }"})
	if err != nil {
		t.Fatal(err)
	}
	api := transport.New(ticking{schema}, transport.Options{Log: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	editor := graphiql.Handler("graphql", "{ greeting }", "query First { greeting }", "subscription Second { ticks }")
	mux.Handle("/graphiql", editor)
	mux.Handle("/graphiql/", editor)
	mux.HandleFunc("/graphql", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("IntrospectionQuery")) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(introspection)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		api.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

const (
	run = `(() => { const b = document.querySelector("button.graphiql-execute-button"); b?.click(); return b != null })()`
)

// TestR45EditorOpensTheQueryOfItsAddressAndSubscribes: in a real browser, from the
// address to the last event of the subscription.
func TestR45EditorOpensTheQueryOfItsAddressAndSubscribes(t *testing.T) {
	query := url.Values{"query": {"subscription Asked($after: String) { ticks(after: $after) }"}, "variables": {`{"after": "x"}`}}
	c := openTab(t, editorOver(t)+"/graphiql?"+query.Encode())
	c.until("the query of the address", `document.querySelector(".graphiql-query-editor")?.innerText.includes("Asked") ?? false`)
	c.until("the button", run)
	c.until("the last event", `document.querySelector(".result-window")?.innerText.includes("7003") ?? false`)
}

// TestR45EditorHasATabForEachExample: for a first visitor.
func TestR45EditorHasATabForEachExample(t *testing.T) {
	c := openTab(t, editorOver(t)+"/graphiql")
	c.until("the tabs",
		`["First", "Second"].every((name) => [...document.querySelectorAll(".graphiql-tab")].some((tab) => tab.innerText.includes(name)))`)
}
