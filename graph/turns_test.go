package graph_test

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/transport"
)

// silent is a store that answers nothing.
type silent struct{}

func (silent) Records(ctx context.Context, _ int64, _ int) ([]config.Record, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) At(ctx context.Context, _ int64) ([]config.Object, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestR03EventsDoNotWaitForTheStore: while the store answers nothing, every subscriber gets its event, with all that it may
// ask of objects, even if only one event is executed at a time.
func TestR03EventsDoNotWaitForTheStore(t *testing.T) {
	c := newConfigured(t, func(o *graph.Options) { o.Config.History = silent{} })
	c.apply(route("shop", "cart", "a"))
	server := httptest.NewServer(transport.New(graph.New(c.options), transport.Options{
		Log: slog.New(slog.DiscardHandler), Streams: transport.StreamLimits{Events: 1},
	}))
	t.Cleanup(server.Close)
	const query = `subscription { changes(filter: {kinds: [CONFIG_OBJECT, DELIVERY]}) { configObjects { object { name current {
		yaml status { findings { code } } history { totalCount compacted nodes { revision } } } } } } }`
	for range 3 {
		line := firstEvent(t, server.URL+"/graphql?query="+url.QueryEscape(query))
		if !strings.Contains(line, `"history":{"totalCount":1`) || strings.Contains(line, `"errors"`) {
			t.Errorf("a subscriber gets %s", line)
		}
	}
}

// firstEvent subscribes, and goes when the test ends.
func firstEvent(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			return lines.Text()
		}
	}
	t.Fatal("the stream ends without an event")
	return ""
}

// TestR03NoFieldOfAnEventReadsTheStore: what reads the store of record (`history` and `configObject(at:)` of Query, see
// TestR41WhatIsInMemoryAsksTheStoreForNothing) cannot be asked for in an event, which would keep others from their places.
func TestR03NoFieldOfAnEventReadsTheStore(t *testing.T) {
	schema := graph.New(graph.Options{}).Schema()
	var reached []string
	var reach func(*ast.Definition)
	reach = func(of *ast.Definition) {
		if of == nil || slices.Contains(reached, of.Name) {
			return
		}
		reached = append(reached, of.Name)
		for _, field := range of.Fields {
			reach(schema.Types[field.Type.Name()])
		}
		for _, possible := range schema.GetPossibleTypes(of) {
			reach(possible)
		}
	}
	reach(schema.Subscription)
	if len(reached) < 20 {
		t.Errorf("only %v are reached", reached)
	}
	for _, never := range []string{"Query", "Mutation", "ConfigRevisionConnection"} {
		if slices.Contains(reached, never) {
			t.Errorf("an event can ask for %s", never)
		}
	}
	read := &reads{}
	c := newConfigured(t, func(o *graph.Options) { o.Fleet = proxies(); read.count(o) })
	c.apply(route("shop", "cart", "a"))
	read.taken()
	s := newSubscriber(t, c.options)
	s.text = `subscription($after: String, $filter: ChangeFilter) { changes(after: $after, filter: $filter) {
	  cursor configObjects { object { current { configRevision { revision } history { nodes { configRevision { revision } } } } } } } }`
	changes := s.changes("", map[string]any{"kinds": []any{"CONFIG_OBJECT"}})
	state := string(changes.next().Data)
	changes.stop()
	if !strings.Contains(state, `"configRevision":null`) || strings.Contains(state, `"configRevision":{`) || read.records.Load() > 0 {
		t.Errorf("an event is %s and reads %s", state, read.taken())
	}
}
