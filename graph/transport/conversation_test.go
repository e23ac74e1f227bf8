package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"isthmus.dev/isthmus/graph/transport"
)

func TestConversation(t *testing.T) {
	_, server := serve(t, transport.Options{})
	s := open(t, server)
	s.say(`{"type":"ping","payload":{"a":1}}`, `{"type":"pong"}`, `{"type":"ping","payload":null}`)
	s.expect(`{"type":"pong","payload":{"a":1}}`, `{"type":"pong"}`)
	s.say(`{"type":"connection_init","payload":{"token":"x"}}`)
	s.expect(`{"type":"connection_ack"}`)
	s.say(subscribe("a", "subscription{ticks}"))
	s.expect(`{"id":"a","type":"next","payload":{"data":{"ticks":1}}}`, `{"id":"a","type":"next","payload":{"data":{"ticks":2}}}`,
		`{"id":"a","type":"next","payload":{"data":{"ticks":3}}}`, `{"id":"a","type":"complete"}`)
	s.say(subscribe("a", "{hello}"))
	s.expect(`{"id":"a","type":"next","payload":{"data":{"hello":"hello"}}}`, `{"id":"a","type":"complete"}`)
	s.say(subscribe("m", "mutation{change}"))
	s.expect(`{"id":"m","type":"next","payload":{"data":{"change":"change"}}}`, `{"id":"m","type":"complete"}`)
	s.say(subscribe("z", "subscription{ticks(count:0)}"))
	s.expect(`{"id":"z","type":"complete"}`)
	s.say(`{"type":"complete","id":"nobody"}`, `{"type":"ping"}`)
	s.expect(`{"type":"pong"}`)
	s.ws.Close(websocket.StatusNormalClosure, "")
}

// failure wants an error, and nothing more of its operation.
func (s *session) failure(id string) (code, requestID string) {
	s.t.Helper()
	text, err := s.next()
	var m struct {
		ID, Type string
		Payload  []struct {
			Extensions struct{ Code, RequestID string }
		}
	}
	if err != nil || json.Unmarshal([]byte(text), &m) != nil || m.Type != "error" || m.ID != id || len(m.Payload) == 0 {
		s.t.Fatalf("heard %s %v, want an error of %s", text, err, id)
	}
	s.say(`{"type":"ping"}`)
	s.expect(`{"type":"pong"}`)
	return m.Payload[0].Extensions.Code, m.Payload[0].Extensions.RequestID
}

func TestErrorIsTheLastMessage(t *testing.T) {
	_, server := serve(t, transport.Options{})
	s := connect(t, server)
	for query, want := range map[string]string{
		"{":                                      "GRAPHQL_PARSE_FAILED",
		"{nothing}":                              "GRAPHQL_VALIDATION_FAILED",
		"subscription{ticks ticks2:ticks}":       "GRAPHQL_VALIDATION_FAILED",
		nested(13):                               "TOO_COMPLEX",
		"{item{" + numbered(31, "a%d:id") + "}}": "TOO_COMPLEX",
		"subscription{items(first:501){totalCount}}":                         "BAD_USER_INPUT",
		"subscription{items(first:500){nodes{items(first:500){nodes{id}}}}}": "TOO_COMPLEX",
		"subscription{denied}":                                               "FORBIDDEN",
		"subscription{explodes}":                                             "INTERNAL",
	} {
		s.say(subscribe("x", query))
		if code, id := s.failure("x"); code != want || id == "" {
			t.Errorf("%.60s: got %s %s, want %s", query, code, id, want)
		}
	}
	s.say(subscribe("x", "subscription{cut}"))
	s.expect(`{"id":"x","type":"next","payload":{"data":{"cut":"once"}}}`)
	if code, _ := s.failure("x"); code != "PRECONDITION_FAILED" {
		t.Errorf("the end by EndWith is %s", code)
	}
}

func TestExecutionsOfEventsAreLimitedAndWaitingIsNot(t *testing.T) {
	synctest.Test(t, executionsOfEventsAreLimited)
}

func executionsOfEventsAreLimited(t *testing.T) {
	schema, server := serveInMemory(t, transport.Options{})
	s := connect(t, server)
	s.say(subscribe("feed", "subscription{feed}"))
	schema.feed <- "first"
	s.expect(`{"id":"feed","type":"next","payload":{"data":{"feed":"first"}}}`)
	for range 3 { // Each takes as long as an operation may.
		s.say(subscribe("x", "subscription{lingers{id}}"))
		if text, err := s.next(); err != nil || !strings.Contains(text, `"UNAVAILABLE"`) {
			t.Fatalf("heard %s %v", text, err)
		}
		s.say(`{"type":"complete","id":"x"}`)
		<-schema.ended
	}
	for heard := false; !heard; { // Later events of x may still be on their way.
		s.say(subscribe("y", "{hello}"))
		for {
			text, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			if text == `{"id":"y","type":"complete"}` {
				heard = true
				break
			}
		}
	}
	schema.feed <- "second"
	s.expect(`{"id":"feed","type":"next","payload":{"data":{"feed":"second"}}}`)
}

func TestClientsCompleteOperations(t *testing.T) {
	schema, server := serve(t, transport.Options{})
	s := connect(t, server)
	for range 50 { // The ID may be used again at once.
		s.say(subscribe("a", "subscription{feed}"), `{"type":"complete","id":"a"}`)
	}
	for range 50 {
		<-schema.ended
	}
	s.say(subscribe("a", "subscription{feed}"))
	schema.feed <- "x"
	s.expect(`{"id":"a","type":"next","payload":{"data":{"feed":"x"}}}`)
	close(schema.feed)
	s.expect(`{"id":"a","type":"complete"}`)
}

func TestOperationsOfAConnectionAreLimited(t *testing.T) {
	schema, server := serve(t, transport.Options{})
	s := connect(t, server)
	for i := range 20 {
		s.say(subscribe(fmt.Sprint(i), "subscription{feed}"))
	}
	for i := range 30 {
		s.say(subscribe(fmt.Sprint("more", i), "subscription{feed}"))
		if code, _ := s.failure(fmt.Sprint("more", i)); code != "RATE_LIMITED" {
			t.Errorf("one too many is %s", code)
		}
	}
	s.say(`{"type":"complete","id":"7"}`)
	<-schema.ended
	s.say(subscribe("7", "{hello}"))
	s.expect(`{"id":"7","type":"next","payload":{"data":{"hello":"hello"}}}`, `{"id":"7","type":"complete"}`)
}

func TestASocketsEndEndsItsSubscriptions(t *testing.T) {
	schema, server := serve(t, transport.Options{})
	for _, end := range []func(*websocket.Conn){
		func(ws *websocket.Conn) { ws.Close(websocket.StatusNormalClosure, "") },
		func(ws *websocket.Conn) { ws.CloseNow() },
	} {
		s := connect(t, server)
		s.say(subscribe("a", "subscription{feed}"), subscribe("b", "subscription{feed}"))
		for heard := map[string]bool{}; len(heard) < 2; { // Both have begun.
			schema.feed <- "x"
			text, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			heard[text] = true
		}
		end(s.ws)
		<-schema.ended
		<-schema.ended
	}
}

// recorder is an Observer that remembers.
type recorder struct {
	mu     sync.Mutex
	counts map[string]int
	closed chan string
}

func newCounts() *recorder {
	return &recorder{counts: map[string]int{}, closed: make(chan string, 100)}
}

func (r *recorder) add(name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[name] += n
}

func (r *recorder) get(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[name]
}

func (r *recorder) Request(operation string, _ time.Duration, failed bool) {
	r.add(fmt.Sprintf("%s %t", operation, failed), 1)
}
func (r *recorder) Connections(transport string, change int) { r.add(transport, change) }
func (r *recorder) Subscriptions(transport string, change int) {
	r.add(transport+" subscriptions", change)
}
func (r *recorder) Event(transport string) { r.add(transport+" events", 1) }
func (r *recorder) Closed(code string)     { r.closed <- code }

func TestWhatIsOpenIsCounted(t *testing.T) {
	counts := newCounts()
	schema, server := serve(t, transport.Options{Observer: counts})
	s := connect(t, server)
	s.say(subscribe("a", "subscription{feed}"))
	schema.feed <- "x"
	s.expect(`{"id":"a","type":"next","payload":{"data":{"feed":"x"}}}`)
	if counts.get("websocket") != 1 || counts.get("websocket subscriptions") != 1 || counts.get("subscription false") != 1 {
		t.Errorf("open: %v", counts.counts)
	}
	s.say(subscribe("q", "{hello}"))
	s.expect(`{"id":"q","type":"next","payload":{"data":{"hello":"hello"}}}`, `{"id":"q","type":"complete"}`)
	s.say(subscribe("e", "{"))
	s.failure("e")
	s.ws.Close(websocket.StatusNormalClosure, "")
	if code := <-counts.closed; code != "client" {
		t.Errorf("the client's close counts as %q", code)
	}
	if counts.get("websocket subscriptions") != 0 || counts.get("websocket events") != 1 || counts.get("query false") != 1 ||
		counts.get(" true") != 1 {
		t.Errorf("closed: %v", counts.counts)
	}
	lost := connect(t, server)
	lost.ws.CloseNow()
	if code := <-counts.closed; code != "lost" {
		t.Errorf("a broken connection counts as %q", code)
	}
	open(t, server).say("{")
	if code := <-counts.closed; code != "4400" {
		t.Errorf("a bad message counts as %q", code)
	}
}

func TestBG19SubscriberThatNeverReads(t *testing.T) { synctest.Test(t, subscriberThatNeverReads) }

func subscriberThatNeverReads(t *testing.T) {
	counts := newCounts()
	schema, server := serveInMemory(t, transport.Options{Observer: counts, Streams: transport.StreamLimits{Stall: 100 * time.Millisecond}})
	s := connect(t, server)
	s.say(subscribe("a", "subscription{floods}"))
	<-schema.ended // It was canceled; only now the client reads.
	if got := s.end(); got.Code != websocket.StatusTryAgainLater || !strings.Contains(got.Reason, "slowly") {
		t.Errorf("closed with %v", got)
	}
	if code := <-counts.closed; code != "1013" {
		t.Errorf("counted as %q", code)
	}
	never := connect(t, server)
	never.say(subscribe("a", "subscription{floods}"))
	<-schema.ended
	if code := <-counts.closed; code != "1013" {
		t.Errorf("one that never reads counts as %q", code)
	}
}

func TestUnansweredPingsEndAConnection(t *testing.T) { synctest.Test(t, unansweredPingsEndAConnection) }

func unansweredPingsEndAConnection(t *testing.T) {
	_, server := serveInMemory(t, transport.Options{})
	pings := make(chan struct{}, 100)
	silent := dial(t, server, websocket.DialOptions{Subprotocols: []string{wsProtocol}, OnPingReceived: func(context.Context, []byte) bool {
		pings <- struct{}{}
		return false
	}})
	silent.say(initMessage)
	silent.expect(`{"type":"connection_ack"}`)
	if got := silent.end(); got.Code != websocket.StatusTryAgainLater || !strings.Contains(got.Reason, "pings") || len(pings) != 1 {
		t.Errorf("closed with %v after %d pings", got, len(pings))
	}
	<-pings
	answering := dial(t, server, websocket.DialOptions{Subprotocols: []string{wsProtocol}, OnPingReceived: func(context.Context, []byte) bool {
		pings <- struct{}{}
		return true
	}})
	answering.say(initMessage)
	answering.expect(`{"type":"connection_ack"}`)
	answering.readAhead() // only a reader answers pings
	for range 100 {
		<-pings
	}
	answering.say(`{"type":"ping"}`)
	answering.expect(`{"type":"pong"}`)
	answering.ws.Close(websocket.StatusNormalClosure, "")
}
