package e2e

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// app is a server that says who it is, as an Echo does, and remembers by path
// what it was asked. ?delay=2s makes it late, ?flaky=2 fail the first two
// requests for a path.
type app struct {
	name  string
	mu    sync.Mutex
	asked map[string][]testbed.EchoAnswer
}

// startApp serves at an address of the namespace, with TLS if there is a
// configuration.
func startApp(t *testing.T, name string, ns *testbed.Namespace, address string, config *tls.Config) *app {
	t.Helper()
	listener, err := ns.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{name: name, asked: map[string][]testbed.EchoAnswer{}}
	server := &http.Server{Handler: a, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	t.Cleanup(func() { server.Close() })
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	go server.Serve(listener)
	return a
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := testbed.EchoAnswer{
		Name: a.name, Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, Host: r.Host,
		Header: r.Header, Remote: r.RemoteAddr,
	}
	if r.TLS != nil {
		answer.ServerName = r.TLS.ServerName
	}
	times := a.note(answer)
	if delay, err := time.ParseDuration(r.URL.Query().Get("delay")); err == nil {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	if failures, err := strconv.Atoi(r.URL.Query().Get("flaky")); err == nil && times <= failures {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(answer)
}

// note returns how often the path was asked for by now.
func (a *app) note(answer testbed.EchoAnswer) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[answer.Path] = append(a.asked[answer.Path], answer)
	return len(a.asked[answer.Path])
}

// requests are those for a path.
func (a *app) requests(path string) []testbed.EchoAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]testbed.EchoAnswer(nil), a.asked[path]...)
}

// site is an HTTPS server's certificate.
func site(authority *testbed.Authority, name string) *tls.Config {
	config := authority.TLS(testbed.Subject{Name: name, Hosts: []string{name}})
	config.NextProtos = []string{"http/1.1"}
	return config
}

// on joins an address of an app with its port.
func on(address string, port int) string { return net.JoinHostPort(address, strconv.Itoa(port)) }
