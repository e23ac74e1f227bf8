package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestR03ClientThatReadsNothing: the handler's Write ends at the limit, and with it the connection.
func TestR03ClientThatReadsNothing(t *testing.T) {
	wrote := make(chan error, 1)
	addr, _, _ := run(t, NewHTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 64<<20)) // more than the buffers of both sides
		wrote <- err
	}), HTTPOptions{WriteTimeout: 200 * time.Millisecond}))
	connection, err := net.Dial("tcp", addr)
	must(t, err)
	defer connection.Close()
	fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
	if err := <-wrote; err == nil {
		t.Error("all of the answer was taken")
	}
}

// TestR03LimitEndsWithTheWrite: an answer may pause for longer than a client may take to read, and the next request on
// the connection has the limit for itself.
func TestR03LimitEndsWithTheWrite(t *testing.T) {
	for _, http2 := range []bool{false, true} { // Without lifting, a stream of HTTP/2 would end in the pause.
		t.Run(fmt.Sprintf("http2 %t", http2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { limitEndsWithTheWrite(t, http2) })
		})
	}
}

func limitEndsWithTheWrite(t *testing.T, http2 bool) {
	const limit = time.Second
	handler := timelyAnswer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "first ")
		_ = http.NewResponseController(w).Flush()
		<-time.NewTimer(3 * limit).C
		fmt.Fprint(w, "last")
	}), limit)
	server, connections := startInMemory(handler, http2)
	defer server.Close()
	for range 2 {
		response, err := server.Client().Get(server.URL)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		must(t, response.Body.Close())
		if err != nil || string(body) != "first last" || (response.ProtoMajor == 2) != http2 {
			t.Errorf("%s: got %q, %v", response.Proto, body, err)
		}
	}
	if *connections != 1 {
		t.Errorf("two requests used %d connections", *connections)
	}
}

// startInMemory starts a server in a bubble of synctest and counts what it is dialled.
func startInMemory(handler http.Handler, http2 bool) (server *httptest.Server, connections *int) {
	listener, connections := testbed.NewMemoryListener(), new(int)
	server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}, EnableHTTP2: http2}
	server.StartTLS()
	server.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		*connections++
		return listener.Dial(ctx, network, addr)
	}
	return server, connections
}
