package transport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/graph/transport"
)

// askFrom sends a request from the address and returns the status.
func askFrom(handler http.Handler, from string, body io.Reader) int {
	r, recorder := request(body), httptest.NewRecorder()
	r.RemoteAddr = from + ":4711"
	handler.ServeHTTP(recorder, r)
	return recorder.Code
}

// TestR03SlowClientsHoldBoundedMemory: over HTTP/2 one caller has thousands of requests whose bodies arrive slowly, or whose
// answers it does not read. What they hold is bounded for the caller and for all; others are answered meanwhile.
func TestR03SlowClientsHoldBoundedMemory(t *testing.T) {
	const kept = 200 << 10
	for name, slow := range map[string]func(handler http.Handler, from string, in, end chan struct{}){
		"bodies that do not arrive": func(handler http.Handler, from string, in, end chan struct{}) {
			askFrom(handler, from, io.MultiReader(strings.NewReader(strings.Repeat(" ", kept)), neverSent{in, end}))
		},
		"answers that are not read": func(handler http.Handler, from string, in, end chan struct{}) {
			r := request(strings.NewReader(sized("{hello}", kept)))
			r.RemoteAddr = from + ":4711"
			handler.ServeHTTP(stalled{httptest.NewRecorder(), in, end}, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			handler := transport.New(newFakeSchema(t), transport.Options{Limits: transport.Limits{HeldPerCaller: 1 << 20, Held: 1<<20 + 1<<19}})
			in, end := make(chan struct{}), make(chan struct{})
			var clients sync.WaitGroup
			for range 3 {
				clients.Go(func() { slow(handler, "10.0.0.1", in, end) })
				<-in
			}
			if code := askFrom(handler, "10.0.0.1", strings.NewReader(sized("{hello}", kept))); code != http.StatusTooManyRequests {
				t.Errorf("one more of the caller is answered %d", code)
			}
			if code := askFrom(handler, "10.0.0.2", strings.NewReader(sized("{hello}", kept))); code != http.StatusOK {
				t.Errorf("another caller is answered %d", code)
			}
			clients.Go(func() { slow(handler, "10.0.0.3", in, end) })
			<-in
			clients.Go(func() { slow(handler, "10.0.0.3", in, end) })
			<-in
			if code := askFrom(handler, "10.0.0.2", strings.NewReader(sized("{hello}", kept))); code != http.StatusServiceUnavailable {
				t.Errorf("when all hold too much, another caller is answered %d", code)
			}
			close(end)
			clients.Wait()
			if code := askFrom(handler, "10.0.0.1", strings.NewReader(sized("{hello}", kept))); code != http.StatusOK {
				t.Errorf("when they have gone, the caller is answered %d", code)
			}
		})
	}
}

// sendForEver has a caller send a large body that does not end before the test.
func sendForEver(t *testing.T, handler http.Handler, caller string) {
	t.Helper()
	in, end := make(chan struct{}), make(chan struct{})
	var client sync.WaitGroup
	t.Cleanup(func() {
		close(end)
		client.Wait()
	})
	client.Go(func() {
		askFrom(handler, caller, io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<20)), neverSent{in, end}))
	})
	<-in
}

// TestR03LargeBodiesOfACaller: one caller does not take all places for large bodies.
func TestR03LargeBodiesOfACaller(t *testing.T) {
	handler := newHandler(t)
	sendForEver(t, handler, "10.0.0.1")
	large := sized("mutation{change}", 2<<20)
	if code := askFrom(handler, "10.0.0.1", strings.NewReader(large)); code != http.StatusTooManyRequests {
		t.Errorf("the second of the caller is answered %d", code)
	}
	if code := askFrom(handler, "10.0.0.2", strings.NewReader(large)); code != http.StatusOK {
		t.Errorf("that of another caller is answered %d", code)
	}
}

// TestR03LargeBodiesThatAreRefusedAreAnswered, all of them, over one server: a client that sends
// its whole body before it reads gets the answer and no broken connection.
func TestR03LargeBodiesThatAreRefusedAreAnswered(t *testing.T) {
	handler := newHandler(t)
	sendForEver(t, handler, "127.0.0.1")
	server := httptest.NewServer(handler)
	defer server.Close()
	body := sized("mutation{change}", 16<<20)
	for range 8 {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			len(body), body)
		if err != nil {
			t.Errorf("sending the body: %v", err)
		}
		if answer, err := http.ReadResponse(bufio.NewReader(connection), nil); err != nil || answer.StatusCode != http.StatusTooManyRequests {
			t.Errorf("the answer is %+v, %v", answer, err)
		}
		_ = connection.Close()
	}
}

// TestR03ManySmallValues: 1 MiB of small values would take 30 MB in memory, of 17 MiB 500 MB.
func TestR03ManySmallValues(t *testing.T) {
	handler := newHandler(t)
	for name, row := range map[string]struct {
		unit   string
		count  int
		status int
	}{
		"as many as may be": {"1,", 49_000, 200},
		"numbers":           {"1,", 51_000, 400},
		"lists":             {"[],", 51_000, 400},
		"objects":           {`{"a":{}},`, 26_000, 400},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, handler, postBody(`{"query":"{hello}","variables":{"a":[`+strings.Repeat(row.unit, row.count)+`1]}}`))
			if got.status != row.status || row.status == 400 && !strings.Contains(got.body, "too many values") {
				t.Errorf("got %d %.200s", got.status, got.body)
			}
		})
	}
}
