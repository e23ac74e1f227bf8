package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
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
	const limit = 200 * time.Millisecond
	pause := func(r *http.Request) {
		timer := time.NewTimer(3 * limit)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	addr, _, _ := run(t, NewHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first ")
		_ = http.NewResponseController(w).Flush()
		pause(r)
		fmt.Fprint(w, "last")
	}), HTTPOptions{WriteTimeout: limit}))
	for range 2 {
		response, err := http.Get("http://" + addr)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		must(t, response.Body.Close())
		if err != nil || string(body) != "first last" {
			t.Errorf("got %q, %v", body, err)
		}
	}
}
