package graph_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// source has the snapshot that a test gives it.
type source struct{ snapshot *federation.Snapshot }

func (s *source) Latest() *federation.Snapshot { return s.snapshot }

func (s *source) next(edit federation.Edit) { s.snapshot, _ = federation.Next(s.snapshot, edit) }

// counters know the first cluster only.
type counters struct{}

func (counters) Counters(id federation.ClusterID) (lastEvent, lastSync time.Time) {
	if id != "c1" {
		return time.Time{}, time.Time{}
	}
	return time.Date(2026, 11, 21, 10, 0, 2, 0, time.UTC), time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC)
}

func (counters) Usage(id federation.ClusterID) (federation.Usage, federation.Limits, bool) {
	return federation.Usage{Objects: 7, Bytes: 3 << 30}, federation.Limits{Objects: 10, Pages: 20, Bytes: 4 << 30}, id == "c1"
}

// hub answers GraphQL by HTTP over a source and a fleet.
type hub struct {
	t       testing.TB
	source  *source
	fleet   *fleet.Fleet
	handler http.Handler
}

func newHub(t *testing.T) hub {
	t.Helper()
	return hubOver(t, fixture(t), proxies())
}

func hubOver(t testing.TB, snapshot *federation.Snapshot, all *fleet.Fleet, change ...func(*graph.Options)) hub {
	t.Helper()
	from := &source{snapshot}
	options := graph.Options{
		Snapshots: from, Counters: counters{}, Fleet: all, Hub: model.Hub{Version: "test", ClusterID: "hub"},
		Now: func() time.Time { return time.Date(2026, 11, 21, 9, 1, 30, 0, time.UTC) },
	}
	for _, c := range change {
		c(&options)
	}
	h := hubWith(t, options)
	h.source, h.fleet = from, all
	return h
}

func hubWith(t testing.TB, options graph.Options) hub {
	t.Helper()
	return hub{t: t, handler: transport.New(graph.New(options), transport.Options{Log: slog.New(slog.DiscardHandler)})}
}

// send returns the answer's data and errors as they are written.
func (h hub) send(query string, variables map[string]any) (data, errs json.RawMessage) {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		h.t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.handler.ServeHTTP(recorder, request)
	text, _ := io.ReadAll(recorder.Body)
	var answer struct{ Data, Errors json.RawMessage }
	if err := json.Unmarshal(text, &answer); err != nil {
		h.t.Fatalf("%v: %s", err, text)
	}
	return answer.Data, answer.Errors
}

// ask returns the answer's data, or its errors as text.
func (h hub) ask(query string, variables map[string]any) (data map[string]any, errs string) {
	h.t.Helper()
	written, refused := h.send(query, variables)
	if len(written) > 0 {
		if err := json.Unmarshal(written, &data); err != nil {
			h.t.Fatal(err)
		}
	}
	return data, string(refused)
}

// answer is ask for a question that has an answer.
func (h hub) answer(query string, variables map[string]any) map[string]any {
	h.t.Helper()
	data, errs := h.ask(query, variables)
	if errs != "" {
		h.t.Fatalf("%s: %s", query, errs)
	}
	return data
}

// at follows a path of names and indexes through an answer.
func at(data any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := data.(map[string]any)
			data = object[step]
		case int:
			list, _ := data.([]any)
			if step >= len(list) {
				return nil
			}
			data = list[step]
		}
	}
	return data
}

func (h hub) want(data any, want any, path ...any) {
	h.t.Helper()
	if got := at(data, path...); !reflect.DeepEqual(got, want) {
		h.t.Errorf("%v is %v, want %v", path, got, want)
	}
}
