package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/graph/transport"
)

// TestR03EventsAreExecutedInTurn: of one change that many follow, over event streams and WebSockets, at most as many events
// are executed at the same time as there are places. Queries are answered meanwhile.
func TestR03EventsAreExecutedInTurn(t *testing.T) { synctest.Test(t, eventsAreExecutedInTurn) }

func eventsAreExecutedInTurn(t *testing.T) {
	const places, each = 2, 10
	schema, server := serveInMemory(t, transport.Options{Streams: transport.StreamLimits{Events: places}})
	s := connect(t, server)
	s.readAhead()
	for i := range each {
		ask(t, server, post("subscription{works}").with("Accept", eventsType))
		s.say(subscribe(fmt.Sprint(i), "subscription{works}"))
	}
	synctest.Wait()
	for left := 2 * each; left > 0; left-- {
		if n := schema.executing.Load(); n != min(places, int64(left)) {
			t.Fatalf("of %d events, %d are executed at the same time, want %d", left, n, places)
		}
		if got := ask(t, server, post("{hello}")); got.StatusCode != http.StatusOK {
			t.Errorf("a query is answered %d", got.StatusCode)
		}
		schema.work <- struct{}{}
		synctest.Wait()
	}
	s.ws.CloseNow()
}

// following has the subscribers of a handler, in the order in which their streams end.
type following struct {
	t       *testing.T
	schema  *fakeSchema
	handler http.Handler

	mu    sync.Mutex
	ended []string
}

func follow(t *testing.T, places int) *following {
	schema := newFakeSchema(t)
	return &following{t: t, schema: schema, handler: transport.New(schema, transport.Options{Streams: transport.StreamLimits{Events: places}})}
}

// add subscribes and waits until the event is executed, or waits for its turn.
func (f *following) add(from, query string, w http.ResponseWriter) (end context.CancelFunc) {
	ctx, end := context.WithCancel(f.t.Context())
	r := request(strings.NewReader(`{"query":"` + query + `"}`)).WithContext(ctx)
	r.Header.Set("Accept", eventsType)
	r.RemoteAddr = from + ":4711"
	go func() {
		f.handler.ServeHTTP(w, r)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = append(f.ended, from)
	}()
	synctest.Wait()
	return end
}

func (f *following) works(from string) (end context.CancelFunc) {
	return f.add(from, "subscription{works}", httptest.NewRecorder())
}

// finish ends the execution of so many events, one after the other.
func (f *following) finish(events int) {
	for range events {
		f.schema.work <- struct{}{}
		synctest.Wait()
	}
}

// TestR03CallersTakeTurns: who has one subscription does not wait for all events of a caller with many.
func TestR03CallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, 1)
		for range 4 {
			f.works("10.0.0.1")
		}
		f.works("10.0.0.2")
		f.works("10.0.0.3")
		f.finish(6)
		want := []string{"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.1", "10.0.0.1"}
		if !slices.Equal(f.ended, want) {
			t.Errorf("the events came in the order %v, want %v", f.ended, want)
		}
	})
}

// TestR03SubscribersThatLeaveGiveTheirTurn: who goes while its event is executed, or waits for that, holds no place.
func TestR03SubscribersThatLeaveGiveTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, 1)
		endFirst, endSecond := f.works("10.0.0.1"), f.works("10.0.0.2")
		f.works("10.0.0.3")
		endSecond()
		endFirst()
		synctest.Wait()
		if n := f.schema.executing.Load(); n != 1 {
			t.Fatalf("%d events are executed when who was before is gone", n)
		}
		f.finish(1)
		if !slices.Contains(f.ended, "10.0.0.3") {
			t.Errorf("the events of %v have ended", f.ended)
		}
	})
}

// TestR03SubscriberThatNeverReadsHoldsNoPlace: an event that its client does not take is executed, and no longer in a place.
func TestR03SubscriberThatNeverReadsHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, 1)
		silent := stalled{httptest.NewRecorder(), make(chan struct{}, 10), make(chan struct{})}
		f.add("10.0.0.1", "subscription{floods}", silent)
		f.works("10.0.0.1")
		f.finish(1)
		if len(f.ended) != 1 {
			t.Errorf("the event of another subscription is not executed: %v have ended", f.ended)
		}
		close(silent.end)
	})
}
