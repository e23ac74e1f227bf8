package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"isthmus.dev/isthmus/internal/clientaddr"
)

// run starts a server and returns its address, a function that ends it, and its result.
func run(t *testing.T, server *HTTP) (addr string, end func(), result chan error) {
	t.Helper()
	listener, err := Listen(t.Context(), "127.0.0.1:0", ListenOptions{AnyPort: true})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	result = make(chan error, 1)
	ended := make(chan struct{})
	go func() { defer close(ended); result <- server.Run(ctx, listener) }()
	t.Cleanup(func() { cancel(); <-ended; http.DefaultClient.CloseIdleConnections(); goleak.VerifyNone(t) })
	return listener.Addr().String(), cancel, result
}

func TestDrainLetsRequestsFinish(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	server := NewHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		fmt.Fprint(w, "done ", r.Context().Err())
	}), HTTPOptions{})
	addr, end, result := run(t, server)
	answers := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + addr)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answers <- string(body)
	}()
	<-entered
	end()
	<-server.Draining()
	close(release)
	if got := <-answers; got != "done <nil>" {
		t.Errorf("got %q", got)
	}
	if err := <-result; err != nil {
		t.Errorf("run: %v", err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the listener is open after the drain")
	}
}

func TestDrainWindowEndsLongRequests(t *testing.T) {
	entered, ended := make(chan struct{}), make(chan error, 1)
	addr, end, result := run(t, NewHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		ended <- r.Context().Err()
	}), HTTPOptions{Drain: 50 * time.Millisecond}))
	go func() {
		if response, err := http.Get("http://" + addr); err == nil {
			response.Body.Close()
		}
	}()
	<-entered
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	must(t, <-result)
}

// TestBG10SlowBody sends a body that never ends; the answer that comes before its end may last.
func TestBG10SlowBody(t *testing.T) {
	read := make(chan error, 1)
	addr, _, _ := run(t, NewHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	}), HTTPOptions{BodyTimeout: 50 * time.Millisecond}))
	connection, err := net.Dial("tcp", addr)
	must(t, err)
	defer connection.Close()
	fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\nx", addr)
	var timeout net.Error
	if err := <-read; !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v", err)
	}
}

func TestLongAnswersOutliveTheBodyLimit(t *testing.T) {
	synctest.Test(t, longAnswersOutliveTheBodyLimit)
}

func longAnswersOutliveTheBodyLimit(t *testing.T) {
	const limit = time.Second // within which the body must come
	server, _ := startInMemory(timelyBody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		timer := time.NewTimer(2 * limit)
		defer timer.Stop()
		select {
		case <-timer.C:
			fmt.Fprint(w, "late")
		case <-r.Context().Done():
		}
	}), limit), false)
	defer server.Close()
	response, err := server.Client().Post(server.URL, "text/plain", strings.NewReader("x"))
	must(t, err)
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "late" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestLargeHeadersAreRefused(t *testing.T) {
	addr, _, _ := run(t, NewHTTP(http.NotFoundHandler(), HTTPOptions{}))
	connection, err := net.Dial("tcp", addr)
	must(t, err)
	defer connection.Close()
	go func() {
		fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 2*maxHeader))
	}()
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil || response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %v, %v", response, err)
	}
}

// TestBG13GuardRefusesOtherSites covers rebinding names, foreign origins and preflights (B-G13, B-G14).
func TestBG13GuardRefusesOtherSites(t *testing.T) {
	guarded := Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		GuardOptions{Hosts: []string{"hub.internal"}})
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:8080", "", 204},
		{"localhost:8080", "", 204},
		{"LOCALHOST", "", 204},
		{"[::1]:8080", "", 204},
		{"hub.internal:8080", "", 204},
		{"127.0.0.1:8080", "http://127.0.0.1:8080", 204},
		{"localhost", "http://localhost:80", 204},
		{"[::1]:8080", "http://[::1]:8080", 204},
		{"evil.example:8080", "", 403},
		{"127.0.0.1.evil.example", "", 403},
		{"10.0.0.1:8080", "", 403},
		{"", "", 403},
		{"localhost.", "", 403},
		{"127.0.0.1:8080", "http://evil.example", 403},
		{"127.0.0.1:8080", "null", 403},
		{"127.0.0.1:8080", "http://127.0.0.1:3000", 403},
		{"127.0.0.1:8080", "https://127.0.0.1:8080", 403},
		{"127.0.0.1:8080", "http://127.0.0.1:8080/x", 403},
		{"127.0.0.1:8080", "file://", 403},
		{"127.0.0.1:8080", "http://localhost:8080", 403},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			request := httptest.NewRequest(method, "/graphql", nil)
			request.Host = c.host
			if c.origin != "" {
				request.Header.Set("Origin", c.origin)
			}
			recorder := httptest.NewRecorder()
			guarded.ServeHTTP(recorder, request)
			if recorder.Code != c.want || recorder.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s with host %q and origin %q: got %d", method, c.host, c.origin, recorder.Code)
			}
		}
	}
}

// TestR45GuardAllowsTheOriginsThatWereNamed: their pages may send operations and read
// the answers; nobody else's may.
func TestR45GuardAllowsTheOriginsThatWereNamed(t *testing.T) {
	const page = "https://dashboard.example.com"
	guarded := Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }),
		GuardOptions{Hosts: []string{"hub.example.com"}, Origins: []string{page, "https://hub.example.com"}})
	for _, c := range []struct {
		method, host, origin string
		want                 int
	}{
		{http.MethodPost, "hub.example.com", page, http.StatusTeapot},
		{http.MethodOptions, "hub.example.com", page, http.StatusNoContent},
		{http.MethodPost, "hub.example.com", "https://hub.example.com", http.StatusTeapot}, // behind a proxy that ends TLS
		{http.MethodPost, "evil.example", page, http.StatusForbidden},
		{http.MethodPost, "hub.example.com", "http://dashboard.example.com", http.StatusForbidden},
		{http.MethodPost, "hub.example.com", page + ".evil.example", http.StatusForbidden},
		{http.MethodOptions, "hub.example.com", "https://evil.example", http.StatusForbidden},
	} {
		request := httptest.NewRequest(c.method, "/graphql", nil)
		request.Host = c.host
		request.Header.Set("Origin", c.origin)
		request.Header.Set("Access-Control-Request-Method", "POST")
		recorder := httptest.NewRecorder()
		guarded.ServeHTTP(recorder, request)
		allowed := recorder.Header().Get("Access-Control-Allow-Origin")
		if recorder.Code != c.want || (allowed == c.origin) != (c.want != http.StatusForbidden) {
			t.Errorf("%+v gets %d, allowed %q", c, recorder.Code, allowed)
		}
	}
}

func TestHealth(t *testing.T) {
	var reasons []string
	handler := Health(func() (bool, []string) { return len(reasons) == 0, reasons },
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }))
	get := func(method, path string) (int, string) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(method, path, nil))
		return recorder.Code, recorder.Body.String()
	}
	if code, body := get("GET", "/readyz"); code != 200 || body != "ok\n" {
		t.Errorf("ready: %d %q", code, body)
	}
	reasons = []string{"cluster c1 is syncing", "a\nb"}
	if code, body := get("GET", "/readyz"); code != 503 || body != "not ready\ncluster c1 is syncing\n\"a\\nb\"\n" {
		t.Errorf("not ready: %d %q", code, body)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/metrics": "metrics"} {
		if code, body := get("GET", path); code != 200 || body != want {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := get("POST", "/healthz"); code != 405 {
		t.Errorf("POST: %d", code)
	}
}

// staying is a gRPC service whose stream ends only with its connection.
type staying struct {
	healthpb.UnimplementedHealthServer
	entered chan struct{}
}

func (s staying) Watch(_ *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	s.entered <- struct{}{}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func TestGRPCDrainEndsStreams(t *testing.T) {
	defer goleak.VerifyNone(t)
	listener, err := Listen(t.Context(), "127.0.0.1:0", ListenOptions{AnyPort: true})
	must(t, err)
	partial := NewPartialMessages(1<<20, LimitOptions{Name: "xds", Metrics: refusals{}, Log: clientaddr.NewLog(slog.New(slog.DiscardHandler))})
	server := grpc.NewServer(GRPC{Idle: DefaultGRPCIdle, Partial: partial}.Options()...)
	service := staying{entered: make(chan struct{}, 100)}
	healthpb.RegisterHealthServer(server, service)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- RunGRPC(ctx, server, listener, 50*time.Millisecond) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer connection.Close()
	stream, err := healthpb.NewHealthClient(connection).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	must(t, err)
	<-service.entered
	cancel()
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream goes on after the drain")
	}
	must(t, <-result)
}

func TestF05PanicOfARequestIsInTheLog(t *testing.T) {
	var log strings.Builder
	server := NewHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/aborted" {
			panic(http.ErrAbortHandler)
		}
		panic("oops")
	}), HTTPOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	addr, end, result := run(t, server)
	for _, path := range []string{"/aborted", "/broken"} {
		if response, err := http.Get("http://" + addr + path); err == nil {
			response.Body.Close()
			t.Errorf("%s is answered with %d", path, response.StatusCode)
		}
	}
	end()
	must(t, <-result)
	if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "path=/broken panic=oops stack=") {
		t.Errorf("the log says %s", text)
	}
}
