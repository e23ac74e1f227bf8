package transport_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/graph/transport"
)

// stalled is a client that does not read: Write blocks until the end of the test.
type stalled struct {
	*httptest.ResponseRecorder
	writing chan struct{}
	end     chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.end
	return 0, net.ErrClosed
}

// neverSent is a body that arrives when the test ends.
type neverSent struct{ reading, end chan struct{} }

func (b neverSent) Read([]byte) (int, error) {
	b.reading <- struct{}{}
	<-b.end
	return 0, io.ErrUnexpectedEOF
}

func request(body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://hub.example/graphql", body)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// TestR03SlowClientsHoldNoPlace: clients that send nothing or read nothing, more than there are places for operations,
// keep nobody out.
func TestR03SlowClientsHoldNoPlace(t *testing.T) {
	handler := newHandler(t)
	in, end := make(chan struct{}), make(chan struct{})
	var clients sync.WaitGroup
	defer clients.Wait()
	defer close(end)
	for range transport.DefaultLimits().InFlight + 1 {
		clients.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), request(neverSent{in, end})) })
		clients.Go(func() {
			handler.ServeHTTP(stalled{httptest.NewRecorder(), in, end}, request(strings.NewReader(`{"query":"{hello}"}`)))
		})
		<-in
		<-in
	}
	if got := send(t, handler, post("{hello}")); got.status != http.StatusOK {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// TestR03PlacesOfACaller: one caller gets a part of the places, and others get theirs meanwhile.
func TestR03PlacesOfACaller(t *testing.T) {
	schema := newFakeSchema(t)
	handler := transport.New(schema, transport.Options{Limits: transport.Limits{InFlight: 4, InFlightPerCaller: 2}})
	send := func(from, query string) int {
		r, recorder := request(strings.NewReader(query)), httptest.NewRecorder()
		r.RemoteAddr = from + ":4711"
		handler.ServeHTTP(recorder, r)
		return recorder.Code
	}
	ask := func(from string) int { return send(from, `{"query":"{hello}"}`) }
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			for send("10.0.0.1", `{"query":"{slow}"}`) == http.StatusTooManyRequests {
				runtime.Gosched() // what asks below was faster
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ask("10.0.0.1") != http.StatusTooManyRequests { // until both are being answered
		<-tick.C
	}
	if code := ask("10.0.0.2"); code != http.StatusOK {
		t.Errorf("another caller is answered %d", code)
	}
	close(schema.slow)
	clients.Wait()
	if code := ask("10.0.0.1"); code != http.StatusOK {
		t.Errorf("when its operations are over it is answered %d", code)
	}
}
