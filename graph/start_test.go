package graph_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// starting is a hub that has not read everything.
type starting struct{ ready chan struct{} }

func (s starting) Ready() <-chan struct{} { return s.ready }

func (s starting) Check() (ready bool, reasons []string) {
	select {
	case <-s.ready:
		return true, nil
	default:
		return false, []string{"cluster hub is SYNCING: waiting for the configuration of FILE"}
	}
}

// duringStart runs a test in fake time, with a hub that is starting.
func duringStart(t *testing.T, body func(t *testing.T, h hub, end func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := starting{make(chan struct{})}
		body(t, hubOver(t, fixture(t), proxies(), func(o *graph.Options) { o.Start = start }), func() { close(start.ready) })
	})
}

// refusedAfter asks, and returns the errors and how long the client waited for them.
func refusedAfter(h hub, query string) (errs string, waited time.Duration) {
	began := time.Now()
	_, errs = h.ask(query, nil)
	return errs, time.Since(began)
}

// TestR107WhatShowsTheMeshWaitsForTheStart: a client does not take what a starting hub has read so far for the mesh.
func TestR107WhatShowsTheMeshWaitsForTheStart(t *testing.T) {
	for _, query := range []string{
		"{services{totalCount}}", "{clusters{totalCount}}", "{overview{services{total}}}", "{configObjects{totalCount}}",
		`{node(id:"x"){id}}`, `{service(hostname:"a"){hostname}}`, "{hub{cluster{services{totalCount}}}}",
		"{hub{version} proxies{totalCount}}", "{hub{...f}} fragment f on Hub{... on Hub{cluster{clusterID}}}", "{...f} fragment f on Query{services{totalCount}}",
		"{certificateAuthority{bundles{roots{clusters{clusterID}}}}}",
	} {
		duringStart(t, func(t *testing.T, h hub, end func()) {
			errs, waited := refusedAfter(h, query)
			if !strings.Contains(errs, `"UNAVAILABLE"`) || !strings.Contains(errs, "waiting for the configuration of FILE") ||
				!strings.Contains(errs, "readinessReasons") || waited != 5*time.Second {
				t.Errorf("%s gets %s after %s", query, errs, waited)
			}
			time.AfterFunc(2*time.Second, end)
			errs, waited = refusedAfter(h, query)
			if strings.Contains(errs, "starting") || waited != 2*time.Second {
				t.Errorf("%s gets %s %s after the end of the start", query, errs, waited)
			}
		})
	}
}

// TestR107SubscriptionsWaitForTheStart: a subscriber takes its first events for all that exists.
func TestR107SubscriptionsWaitForTheStart(t *testing.T) {
	duringStart(t, func(t *testing.T, h hub, _ func()) {
		request := httptest.NewRequest(http.MethodGet, "/graphql?query="+url.QueryEscape("subscription{changes{resync}}"), nil)
		request.Header.Set("Accept", "text/event-stream")
		recorder := httptest.NewRecorder()
		h.handler.ServeHTTP(recorder, request)
		if text := recorder.Body.String(); !strings.Contains(text, `"UNAVAILABLE"`) || strings.Contains(text, "resync") {
			t.Errorf("a subscriber gets %s", text)
		}
	})
}

// TestR107AStartingHubSaysWhatItWaitsFor: what an operator asks about a hub that does not become ready is answered at once.
func TestR107AStartingHubSaysWhatItWaitsFor(t *testing.T) {
	duringStart(t, func(t *testing.T, h hub, end func()) {
		began := time.Now()
		for _, query := range []string{
			"{__typename __schema{types{name}}}", "{kinds{kind} errorCodes{code} findingCodes{code}}", "{...f} fragment f on Query{hub{version}}",
		} {
			h.answer(query, nil)
		}
		const ask = "{hub{ready readinessReasons}}"
		h.want(h.answer(ask, nil), map[string]any{
			"ready": false, "readinessReasons": []any{"cluster hub is SYNCING: waiting for the configuration of FILE"},
		}, "hub")
		end()
		h.want(h.answer(ask, nil), map[string]any{"ready": true, "readinessReasons": []any{}}, "hub")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the answers took %s", waited)
		}
	})
}

// TestR107ChangesWaitForTheStoreAlone: another source may be unreadable until a change is made.
func TestR107ChangesWaitForTheStoreAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh, log := federation.NewAggregate(nil), slog.New(slog.DiscardHandler)
		writer := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
		store := config.Named{Name: "ETCD", Source: memory.New(routeKinds...)}
		objects := config.NewAggregate(config.Options{Hub: "hub"}, writer, log, store, config.Named{Name: "FILE", Source: unread{kinds: routeKinds}})
		h := hubWith(t, graph.Options{
			Snapshots: mesh, Hub: model.Hub{ClusterID: "hub"}, Start: starting{make(chan struct{})}, Config: graph.Config{Objects: objects},
		})
		const change = `mutation{releaseWorkload(input:{namespace:"a",name:"b"}){userErrors{code}}}`
		if errs, waited := refusedAfter(h, change); !strings.Contains(errs, "the hub is starting") || waited != 5*time.Second {
			t.Errorf("before the store was read: %s after %s", errs, waited)
		}
		run(t, objects)
		synctest.Wait()
		if errs, waited := refusedAfter(h, change); strings.Contains(errs, "the hub is starting") || waited != 0 {
			t.Errorf("after the store was read: %s after %s", errs, waited)
		}
	})
}

// unread is a source that cannot be read.
type unread struct{ kinds []federation.Kind }

func (u unread) Kinds() []federation.Kind { return u.kinds }

func (unread) Run(ctx context.Context, _ config.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}
