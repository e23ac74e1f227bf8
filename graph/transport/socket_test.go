package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/graph/transport"
)

const wsProtocol = "graphql-transport-ws"

// serve starts a server for the fake schema.
func serve(t *testing.T, options transport.Options) (*fakeSchema, *httptest.Server) {
	t.Helper()
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	schema := newFakeSchema(t)
	server := httptest.NewServer(transport.New(schema, options))
	t.Cleanup(server.Close)
	return schema, server
}

// serveInMemory is serve in a bubble of synctest.
func serveInMemory(t *testing.T, options transport.Options) (*fakeSchema, *httptest.Server) {
	t.Helper()
	options.Log = slog.New(slog.DiscardHandler)
	schema := newFakeSchema(t)
	return schema, startInMemory(t, &httptest.Server{Config: &http.Server{Handler: transport.New(schema, options)}})
}

// startInMemory starts a server in a bubble of synctest.
func startInMemory(t *testing.T, server *httptest.Server) *httptest.Server {
	t.Helper()
	listener := testbed.NewMemoryListener()
	server.Listener = listener
	if server.EnableHTTP2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	server.Client().Transport.(*http.Transport).DialContext = listener.Dial
	t.Cleanup(server.Close)
	return server
}

// session is a client of graphql-transport-ws.
type session struct {
	t     *testing.T
	ws    *websocket.Conn
	heard chan message // what readAhead read; nil: next reads
}

type message struct {
	text string
	err  error
}

// readAhead reads all messages as they come.
func (s *session) readAhead() {
	s.heard = make(chan message, 1000)
	go func() {
		for {
			_, data, err := s.ws.Read(s.t.Context())
			s.heard <- message{string(data), err}
			if err != nil {
				return
			}
		}
	}()
}

func dial(t *testing.T, server *httptest.Server, options websocket.DialOptions) *session {
	t.Helper()
	options.HTTPClient = server.Client()
	ws, response, err := websocket.Dial(t.Context(), server.URL+"/graphql", &options)
	if err != nil {
		t.Fatalf("%v %v", err, response)
	}
	ws.SetReadLimit(-1)
	t.Cleanup(func() { ws.CloseNow() })
	return &session{t: t, ws: ws}
}

func open(t *testing.T, server *httptest.Server) *session {
	t.Helper()
	return dial(t, server, websocket.DialOptions{Subprotocols: []string{wsProtocol}})
}

// connect is a session that has been acknowledged.
func connect(t *testing.T, server *httptest.Server) *session {
	t.Helper()
	s := open(t, server)
	s.say(`{"type":"connection_init"}`)
	s.expect(`{"type":"connection_ack"}`)
	return s
}

func (s *session) say(messages ...string) {
	s.t.Helper()
	for _, message := range messages {
		if err := s.ws.Write(s.t.Context(), websocket.MessageText, []byte(message)); err != nil {
			s.t.Logf("saying %.80s: %v", message, err)
			return
		}
	}
}

func (s *session) next() (string, error) {
	if s.heard != nil {
		m := <-s.heard
		return m.text, m.err
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	_, data, err := s.ws.Read(ctx)
	return string(data), err
}

// expect wants these messages next.
func (s *session) expect(messages ...string) {
	s.t.Helper()
	for _, want := range messages {
		if got, err := s.next(); err != nil || got != want {
			s.t.Fatalf("heard %s %v, want %s", got, err, want)
		}
	}
}

// end reads until the connection is closed.
func (s *session) end() websocket.CloseError {
	s.t.Helper()
	for {
		if _, err := s.next(); err != nil {
			var closed websocket.CloseError
			if !errors.As(err, &closed) {
				s.t.Errorf("the connection ends without a close frame: %v", err)
			}
			return closed
		}
	}
}

const initMessage = `{"type":"connection_init"}`

func subscribe(id, query string) string {
	return `{"type":"subscribe","id":"` + id + `","payload":{"query":"` + query + `"}}`
}

func TestBG17CloseCodes(t *testing.T) {
	_, server := serve(t, transport.Options{Streams: transport.StreamLimits{Messages: 1}, Connect: gatekeeper})
	for name, row := range map[string]struct {
		say  []string
		code int
	}{
		"not JSON":                {[]string{`{`}, 4400},
		"nothing":                 {[]string{``}, 4400},
		"a list":                  {[]string{`[]`}, 4400},
		"null":                    {[]string{`null`}, 4400},
		"no type":                 {[]string{`{}`}, 4400},
		"a type that is not text": {[]string{`{"type":1}`}, 4400},
		"unknown type":            {[]string{`{"type":"hello"}`}, 4400},
		"the older protocol":      {[]string{initMessage, `{"type":"start","id":"1","payload":{"query":"{hello}"}}`}, 4400},
		"a message of servers":    {[]string{`{"type":"connection_ack"}`}, 4400},
		"members twice":           {[]string{`{"type":"ping","type":"ping"}`}, 4400},
		"deep": {[]string{`{"type":"ping","payload":{"a":` + strings.Repeat("[", 9999) +
			strings.Repeat("]", 9999) + `}}`}, 4400},
		"payload of init is text":    {[]string{`{"type":"connection_init","payload":"x"}`}, 4400},
		"payload of ping is a list":  {[]string{`{"type":"ping","payload":[]}`}, 4400},
		"subscribe without id":       {[]string{initMessage, `{"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400},
		"subscribe with an empty id": {[]string{initMessage, subscribe("", "{hello}")}, 4400},
		"subscribe without payload":  {[]string{initMessage, `{"type":"subscribe","id":"1"}`}, 4400},
		"subscribe without query":    {[]string{initMessage, `{"type":"subscribe","id":"1","payload":{}}`}, 4400},
		"query is a number":          {[]string{initMessage, `{"type":"subscribe","id":"1","payload":{"query":1}}`}, 4400},
		"variables are a list": {[]string{
			initMessage,
			`{"type":"subscribe","id":"1","payload":{"query":"{hello}","variables":[]}}`,
		}, 4400},
		"complete without id":                {[]string{initMessage, `{"type":"complete"}`}, 4400},
		"subscribe before init":              {[]string{subscribe("1", "{hello}")}, 4401},
		"the payload of init is not welcome": {[]string{`{"type":"connection_init","payload":{"token":"bad"}}`}, 4403},
		"ID in use":                          {[]string{initMessage, subscribe("1", "subscription{feed}"), subscribe("1", "{hello}")}, 4409},
		"two inits":                          {[]string{initMessage, initMessage}, 4429},
		"a fault of the hub":                 {[]string{`{"type":"connection_init","payload":{"token":"panic"}}`}, 4500},
		"a message that is too large":        {[]string{`{"type":"ping","payload":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`}, 1009},
		"more messages than allowed": {
			strings.Split(strings.Repeat(`{"type":"ping"} `, 30), " ")[:30],
			1008,
		}, // A slow client is allowed one more each second.
		"messages of a megabyte are not read": {[]string{strings.Repeat("x", 1<<20)}, 1009},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, server)
			s.say(row.say...)
			got := s.end()
			if int(got.Code) != row.code || got.Reason == "" || strings.Contains(got.Reason, "hunter2") {
				t.Errorf("closed with %d %q, want %d", got.Code, got.Reason, row.code)
			}
		})
	}
}

// gatekeeper decides by a token.
func gatekeeper(_ context.Context, payload map[string]any) error {
	switch payload["token"] {
	case "bad":
		return errors.New("token=hunter2")
	case "panic":
		panic("token=hunter2")
	case "old":
		return transport.Errorf(transport.Forbidden, "the token is too old")
	}
	return nil
}

func TestBG17OtherFaultsOfTheWire(t *testing.T) { synctest.Test(t, otherFaultsOfTheWire) }

func otherFaultsOfTheWire(t *testing.T) {
	_, server := serveInMemory(t, transport.Options{Streams: transport.StreamLimits{Messages: 1}, Connect: gatekeeper})
	check := func(name string, s *session, code int) {
		t.Helper()
		if got := s.end(); int(got.Code) != code || got.Reason == "" {
			t.Errorf("%s: closed with %d %q, want %d", name, got.Code, got.Reason, code)
		}
	}
	check("no init", open(t, server), 4408)
	pings := open(t, server)
	pings.say(`{"type":"ping"}`)
	pings.expect(`{"type":"pong"}`)
	check("a ping is not an init", pings, 4408)
	check("no subprotocol", dial(t, server, websocket.DialOptions{}), 4406)
	check("the older protocol", dial(t, server, websocket.DialOptions{Subprotocols: []string{"graphql-ws"}}), 4406)

	binary := connect(t, server)
	if err := binary.ws.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	check("binary", binary, 4400)
	fragments := connect(t, server)
	writer, err := fragments.ws.Writer(t.Context(), websocket.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write([]byte(`{"type":` + strings.Repeat(" ", 8<<10))); err != nil { // More than the client holds back.
		t.Fatal(err)
	}
	check("fragments for ever", fragments, 1008)
	shown := open(t, server)
	shown.say(`{"type":"connection_init","payload":{"token":"old"}}`)
	if got := shown.end(); got.Code != 4403 || !strings.Contains(got.Reason, "the token is too old") {
		t.Errorf("closed with %v", got)
	}
}

func TestPingsOfWebSocketCountAsMessages(t *testing.T) {
	_, server := serve(t, transport.Options{Streams: transport.StreamLimits{Messages: 1}})
	s := connect(t, server)
	closed := make(chan websocket.CloseError, 1)
	go func() { closed <- s.end() }()
	for s.ws.Ping(t.Context()) == nil {
	}
	if got := <-closed; got.Code != 1008 {
		t.Errorf("closed with %v", got)
	}
}

// TestPongsOfWebSocketCountAsMessages: a client may send pongs that nobody asked for, and
// each costs the hub as much as a ping.
func TestPongsOfWebSocketCountAsMessages(t *testing.T) {
	_, server := serve(t, transport.Options{Streams: transport.StreamLimits{Messages: 1}})
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "GET /graphql HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n", server.Listener.Addr(), wsProtocol)
	if _, err := connection.Write(bytes.Repeat([]byte{0x8a, 0x80, 0, 0, 0, 0}, 1000)); err != nil {
		t.Fatal(err)
	}
	if heard, _ := io.ReadAll(connection); !bytes.Contains(heard, []byte{0x88}) ||
		!bytes.Contains(heard, []byte("at most 1 messages a second")) {
		t.Errorf("heard %q", heard)
	}
}

func TestHandshakeRefusals(t *testing.T) {
	_, server := serve(t, transport.Options{Streams: transport.StreamLimits{ConnectionsPerAddress: 1}})
	try := func(headers http.Header) *http.Response {
		ws, response, err := websocket.Dial(t.Context(), server.URL+"/graphql",
			&websocket.DialOptions{Subprotocols: []string{wsProtocol}, HTTPHeader: headers})
		if err == nil {
			ws.CloseNow()
			t.Errorf("%v is let in", headers)
		}
		return response
	}
	for name, value := range map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"} {
		if got := try(http.Header{name: {value}}); got.StatusCode != 403 {
			t.Errorf("BG17 %s: %s got %d", name, value, got.StatusCode)
		}
	}
	for name, set := range map[string]func(*http.Request){
		"no version": func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==") },
		"no key":     func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "13") },
		"POST":       func(r *http.Request) { r.Method = http.MethodPost },
	} {
		request := httptest.NewRequest(http.MethodGet, server.URL+"/graphql", nil)
		request.RequestURI = ""
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", "websocket")
		set(request)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(name, err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !strings.Contains(string(text), `"code":"BAD_USER_INPUT"`) || answer.StatusCode/100 != 4 {
			t.Errorf("a handshake with %s got %d %s", name, answer.StatusCode, text)
		}
	}
	first := connect(t, server)
	if got := try(nil); got.StatusCode != 429 {
		t.Errorf("one connection too many got %d", got.StatusCode)
	}
	first.ws.Close(websocket.StatusNormalClosure, "")
	for deadline := time.Now().Add(time.Minute); ; {
		ws, _, err := websocket.Dial(t.Context(), server.URL+"/graphql", nil)
		if err == nil {
			ws.CloseNow()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a closed connection is not free again")
		}
	}
}

// certified gives every caller a certificate of that name, which is valid
// for the given time from the request on.
func certified(handler http.Handler, name string, holds time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name + r.Header.Get("X-Other")}, NotAfter: time.Now().Add(holds)}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		handler.ServeHTTP(w, r)
	})
}

func TestConnectionsOfACertificateAreLimited(t *testing.T) {
	server := httptest.NewServer(certified(newHandler(t), "ann", time.Hour))
	t.Cleanup(server.Close)
	for range 5 {
		connect(t, server)
	}
	_, response, err := websocket.Dial(t.Context(), server.URL+"/graphql", nil)
	if err == nil || response.StatusCode != 429 {
		t.Errorf("the sixth got %v %v", response, err)
	}
	dial(t, server, websocket.DialOptions{HTTPHeader: http.Header{"X-Other": {"other"}}})
}

// TestU53StreamsEndWithTheTrust, and not before: the certificate is valid for longer.
func TestU53StreamsEndWithTheTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schema := newFakeSchema(t)
		var revoked atomic.Bool
		handler := transport.New(schema, transport.Options{Log: slog.New(slog.DiscardHandler), Trust: func(*tls.ConnectionState) error {
			if revoked.Load() {
				return errors.New("its CA was removed")
			}
			return nil
		}})
		server := startInMemory(t, &httptest.Server{Config: &http.Server{Handler: certified(handler, "ann", time.Hour)}})
		s := connect(t, server)
		s.say(subscribe("a", "subscription{waits}"))
		s.expect(`{"id":"a","type":"next","payload":{"data":{"waits":"x"}}}`)
		events := ask(t, server, post("subscription{waits}").with("Accept", eventsType))
		lineOf(t, events.Body, "data: ")
		<-time.NewTimer(6 * time.Second).C // the hub has looked again
		select {
		case <-schema.ended:
			t.Fatal("a stream ends while its client is trusted")
		default:
		}
		revoked.Store(true)
		began := time.Now()
		if got := s.end(); got.Code != 4403 || !strings.Contains(got.Reason, "its CA was removed") {
			t.Errorf("closed with %v", got)
		}
		if got := whole(t, events); strings.Contains(got, "complete") {
			t.Errorf("the event stream ends with %q", got)
		}
		<-schema.ended
		<-schema.ended
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the streams end after %v", took)
		}
	})
}

func TestBG18StreamsEndWithTheCertificate(t *testing.T) {
	synctest.Test(t, streamsEndWithTheCertificate)
}

func streamsEndWithTheCertificate(t *testing.T) {
	schema := newFakeSchema(t)
	handler := transport.New(schema, transport.Options{Log: slog.New(slog.DiscardHandler), Trust: func(s *tls.ConnectionState) error {
		if !time.Now().Before(s.PeerCertificates[0].NotAfter) {
			return errors.New("the certificate has expired")
		}
		return nil
	}})
	const holds = 10 * time.Second
	server := startInMemory(t, &httptest.Server{Config: &http.Server{Handler: certified(handler, "ann", holds)}})
	began := time.Now()
	s := connect(t, server)
	s.say(subscribe("a", "subscription{waits}"))
	s.expect(`{"id":"a","type":"next","payload":{"data":{"waits":"x"}}}`)
	events := ask(t, server, post("subscription{waits}").with("Accept", eventsType))
	lineOf(t, events.Body, "data: ")
	if got := s.end(); got.Code != 4403 || !strings.Contains(got.Reason, "expired") {
		t.Errorf("closed with %v", got)
	}
	if got := whole(t, events); strings.Contains(got, "complete") {
		t.Errorf("the event stream ends with %q", got)
	}
	<-schema.ended
	<-schema.ended
	if took := time.Since(began); took != holds {
		t.Errorf("the streams ended after %v, the certificate after %v", took, holds)
	}
}
