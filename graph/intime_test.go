package graph_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/graph"
)

// TestR111AnEndedQueryShowsNoPartOfAList: a query ends while it is answered, and its client gets no count of what was not
// looked at.
func TestR111AnEndedQueryShowsNoPartOfAList(t *testing.T) {
	var end context.CancelFunc // ends the query once it has come to a cluster
	h := hubOver(t, fixture(t), proxies(), func(o *graph.Options) {
		o.Now = func() time.Time {
			end()
			return time.Now()
		}
	})
	for _, list := range []string{
		`services { totalCount }`, `services(filter: {hostnameContains: "web"}) { totalCount nodes { hostname } }`,
		`endpoints(filter: {health: HEALTHY}) { totalCount }`, `endpoints(last: 1) { nodes { address } }`,
	} {
		body, err := json.Marshal(map[string]any{"query": `{ cluster(clusterID: "c1") { ` + list + ` } }`})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		end = cancel
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/graphql", strings.NewReader(string(body)))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.handler.ServeHTTP(recorder, request)
		if ctx.Err() == nil {
			t.Fatalf("%s did not end", list)
		}
		if text := recorder.Body.String(); !strings.Contains(text, "the operation was cancelled") || strings.Contains(text, `"data":{`) {
			t.Errorf("%s is answered %s", list, text)
		}
	}
}

// TestR111AWalkEndsSoonAfterTheOperation: it does not go on to the end of the list.
func TestR111AWalkEndsSoonAfterTheOperation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	visited := 0
	for range graph.InTime(ctx, slices.Values(make([]int, 1000))) {
		visited++
		if visited == 10 {
			cancel()
		}
	}
	if visited > 100 {
		t.Errorf("%d items were visited, of which the first 10 were before the end", visited)
	}
}
