package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"isthmus.dev/isthmus/graph/transport"
)

const eventsType = "text/event-stream"

// ask sends a request to a real server and checks its status.
func ask(t *testing.T, server *httptest.Server, c call) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.target, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// whole reads a stream to its end, without comments.
func whole(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return comments.ReplaceAllString(string(text), "")
}

var comments = regexp.MustCompile(`(?m)^:\n\n`)

const completed = "event: complete\ndata:\n\n"

func TestEvents(t *testing.T) {
	_, server := serve(t, transport.Options{})
	for name, row := range map[string]struct {
		call call
		want string
	}{
		"subscription by POST": {
			post("subscription{ticks(count:2)}").with("Accept", eventsType),
			"event: next\ndata: {\"data\":{\"ticks\":1}}\n\nevent: next\ndata: {\"data\":{\"ticks\":2}}\n\n" + completed,
		},
		"subscription by GET": {
			get("query="+url.QueryEscape("subscription{ticks(count:1)}")).with("Accept", eventsType),
			"event: next\ndata: {\"data\":{\"ticks\":1}}\n\n" + completed,
		},
		"subscription without events": {post("subscription{ticks(count:0)}").with("Accept", eventsType), completed},
		"query": {
			get("query={hello}").with("Accept", eventsType),
			"event: next\ndata: {\"data\":{\"hello\":\"hello\"}}\n\n" + completed,
		},
		"mutation": {
			post("mutation{change}").with("Accept", eventsType),
			"event: next\ndata: {\"data\":{\"change\":\"change\"}}\n\n" + completed,
		},
		"every type, as urql asks": {
			post("subscription{ticks(count:1)}").with("Accept",
				"application/graphql-response+json, application/json, text/event-stream, multipart/mixed"),
			"event: next\ndata: {\"data\":{\"ticks\":1}}\n\n" + completed,
		},
		"events weigh more": {
			post("{hello}").with("Accept", "application/json;q=0.5, text/event-stream"),
			"event: next\ndata: {\"data\":{\"hello\":\"hello\"}}\n\n" + completed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(t, server, row.call)
			if got := whole(t, response); response.StatusCode != 200 || got != row.want {
				t.Errorf("got %d %q, want %q", response.StatusCode, got, row.want)
			}
			if header := response.Header; header.Get("Content-Type") != "text/event-stream; charset=utf-8" ||
				header.Get("Cache-Control") != "no-store" || header.Get("X-Request-Id") == "" {
				t.Errorf("the headers are %v", header)
			}
		})
	}
}

func TestFaultsOfTheOperationAreEvents(t *testing.T) {
	_, server := serve(t, transport.Options{})
	for query, code := range map[string]string{
		"{":                              "GRAPHQL_PARSE_FAILED",
		"subscription{nothing}":          "GRAPHQL_VALIDATION_FAILED",
		"subscription{ticks a:feed}":     "GRAPHQL_VALIDATION_FAILED",
		nested(13):                       "TOO_COMPLEX",
		"{items(first:501){totalCount}}": "BAD_USER_INPUT",
		"subscription{denied}":           "FORBIDDEN",
		"subscription{explodes}":         "INTERNAL",
	} {
		response := ask(t, server, post(query).with("Accept", eventsType))
		got := whole(t, response)
		if response.StatusCode != 200 || !strings.HasPrefix(got, `event: next`+"\n"+`data: {"errors":[`) ||
			!strings.Contains(got, `"code":"`+code+`"`) ||
			strings.Contains(got, `"data":`) || strings.Contains(got, "hunter2") || strings.Count(got, "event: ") != 2 ||
			!strings.HasSuffix(got, completed) {
			t.Errorf("%.40s got %d %s, want %s", query, response.StatusCode, got, code)
		}
	}
	if got := whole(t, ask(t, server, post("subscription{cut}").with("Accept", eventsType))); !strings.Contains(got, "PRECONDITION_FAILED") ||
		!strings.HasSuffix(got, completed) {
		t.Errorf("EndWith ends with %s", got)
	}
}

func TestFaultsOfTheRequestHaveAStatus(t *testing.T) {
	handler := newHandler(t)
	for name, row := range map[string]struct {
		call   call
		status int
	}{
		"mutation by GET":          {get("query=mutation{change}"), 405},
		"another site":             {get("query=subscription{ticks}").with("Sec-Fetch-Site", "cross-site"), 403},
		"another origin":           {get("query=subscription{ticks}").with("Origin", "http://evil.example"), 403},
		"a form":                   {post("{hello}").with("Content-Type", "text/plain"), 415},
		"not JSON":                 {postBody("{"), 400},
		"no query":                 {postBody("{}"), 422},
		"reservation by header":    {post("{hello}").with("X-GraphQL-Event-Stream-Token", "x"), 400},
		"reservation in the query": {get("token=x"), 400},
		"making a reservation":     {call{"PUT", "/graphql", "", nil}, 405},
		"stopping an operation":    {call{"DELETE", "/graphql?operationId=x", "", nil}, 405},
	} {
		got := send(t, handler, row.call.with("Accept", eventsType))
		if got.status != row.status || strings.Contains(got.body, `"data"`) {
			t.Errorf("%s got %d %s, want %d", name, got.status, got.body, row.status)
		}
		if strings.Contains(name, "reservation") && !strings.Contains(got.body, "single connection mode") {
			t.Errorf("%s gets %s", name, got.body)
		}
	}
	both := "application/json, text/event-stream"
	if got := send(t, handler, post("subscription{nothing}").with("Accept", both)); got.status != 422 {
		t.Errorf("a client that takes plain answers got %d %s", got.status, got.body)
	}
	if got := send(t, handler, post("{hello}").with("Accept", both)); got.status != 200 || got.header.Get("Content-Type") != plainJSON {
		t.Errorf("a query of that client got %d %s", got.status, got.body)
	}
}

func TestEventStreamsAreLimited(t *testing.T) {
	schema, server := serve(t, transport.Options{Limits: transport.Limits{InFlight: 1}, Streams: transport.StreamLimits{EventStreams: 1}})
	feed := post("subscription{feed}").with("Accept", eventsType)
	first := ask(t, server, feed)
	schema.feed <- "set up" // the place in flight is given back before the first event
	for lines := bufio.NewScanner(first.Body); lines.Scan() && lines.Text() != "event: next"; {
	}
	if second := ask(t, server, feed); second.StatusCode != 429 {
		t.Errorf("one stream too many got %d", second.StatusCode)
	}
	if query := ask(t, server, post("{hello}")); query.StatusCode != 200 {
		t.Errorf("an open subscription counts as in flight: %d", query.StatusCode)
	}
	first.Body.Close()
	<-schema.ended
}

func TestAClientsEndEndsItsEventStream(t *testing.T) {
	schema, server := serve(t, transport.Options{})
	response := ask(t, server, post("subscription{feed}").with("Accept", eventsType))
	schema.feed <- "x"
	if line := lineOf(t, response.Body, "data: "); line != `data: {"data":{"feed":"x"}}` {
		t.Errorf("got %s", line)
	}
	response.Body.Close()
	<-schema.ended
}

// lineOf reads until a line with that prefix.
func lineOf(t *testing.T, body io.Reader, prefix string) string {
	t.Helper()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), prefix) {
			return lines.Text()
		}
	}
	t.Fatalf("the stream ends without %q", prefix)
	return ""
}

func TestCommentsKeepAStreamAlive(t *testing.T) {
	_, server := serve(t, transport.Options{Streams: transport.StreamLimits{KeepAlive: time.Millisecond}})
	response := ask(t, server, post("subscription{feed}").with("Accept", eventsType))
	for range 3 {
		lineOf(t, io.LimitReader(response.Body, 3), ":")
	}
}

// TestStreamsOutliveTheLimitOfAnswers: a server's write limit is for answers that
// end. A stream sets its own for each event; so does one over HTTP/2.
func TestStreamsOutliveTheLimitOfAnswers(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2 %t", http2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { streamsOutliveTheLimit(t, http2) })
		})
	}
}

func streamsOutliveTheLimit(t *testing.T, http2 bool) {
	const limit = time.Minute
	schema := newFakeSchema(t)
	handler := transport.New(schema, transport.Options{Log: slog.New(slog.DiscardHandler)})
	server := startInMemory(t, &httptest.Server{Config: &http.Server{Handler: handler, WriteTimeout: limit}, EnableHTTP2: http2})
	response := ask(t, server, post("subscription{feed}").with("Accept", eventsType))
	for began := time.Now(); time.Since(began) < 3*limit; {
		lineOf(t, io.LimitReader(response.Body, 3), ":")
	}
	schema.feed <- "late"
	if line := lineOf(t, response.Body, "data: "); !strings.Contains(line, "late") || (response.ProtoMajor == 2) != http2 {
		t.Errorf("%s: got %s", response.Proto, line)
	}
	response.Body.Close()
	<-schema.ended
}

func TestBG19EventStreamThatIsNeverRead(t *testing.T) {
	schema, server := serve(t, transport.Options{Streams: transport.StreamLimits{Stall: 100 * time.Millisecond}})
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection,
		"GET /graphql?query=subscription{floods} HTTP/1.1\r\nHost: hub\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-schema.ended // It was canceled, though nothing was read.
}

func TestTheHubsEndEndsStreams(t *testing.T) {
	handler := transport.New(newFakeSchema(t), transport.Options{Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- handler.Run(ctx) }()
	events := ask(t, server, post("subscription{waits}").with("Accept", eventsType))
	lineOf(t, events.Body, "data: ")
	s := connect(t, server)
	s.say(subscribe("a", "subscription{waits}"))
	s.expect(`{"id":"a","type":"next","payload":{"data":{"waits":"x"}}}`)
	cancel()
	if got := s.end(); got.Code != websocket.StatusGoingAway {
		t.Errorf("the WebSocket is closed with %v", got)
	}
	if got := whole(t, events); strings.Contains(got, "complete") {
		t.Errorf("the event stream ends with %q; complete would keep its client from coming back", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := ask(t, server, post("subscription{feed}").with("Accept", eventsType)); got.StatusCode != 503 {
		t.Errorf("a new stream got %d", got.StatusCode)
	}
	if got := ask(t, server, post("{hello}")); got.StatusCode != 200 {
		t.Errorf("a query got %d: requests may go on for the drain window", got.StatusCode)
	}
	if err := handler.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestRunWaitsForClientsNoLongerThanItsLimit(t *testing.T) { synctest.Test(t, runWaitsForClients) }

func runWaitsForClients(t *testing.T) {
	const limit = time.Second
	handler := transport.New(newFakeSchema(t), transport.Options{
		Log:     slog.New(slog.DiscardHandler),
		Streams: transport.StreamLimits{Drain: limit},
	})
	server := startInMemory(t, &httptest.Server{Config: &http.Server{Handler: handler}})
	silent := connect(t, server) // Never reads, and so never answers a close frame.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if err := handler.Run(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took != limit {
		t.Errorf("it took %v, the limit is %v", took, limit)
	}
	silent.ws.CloseNow()
}
