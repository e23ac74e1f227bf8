package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// tollgate is a proxy in front of an API server. Each request is a step of the client; a
// step can be that at which the asker dies.
type tollgate struct {
	access testbed.Access

	cut func() // ends the connections

	mu    sync.Mutex
	steps []string
	at    int    // the step, from 1; 0: none
	die   func() // returns when the asker is dead
	// answers, if not nil, answers in place of the API server, or does not.
	answers func(w http.ResponseWriter, r *http.Request, n int) bool
}

// startTollgate lets the access through to the API server.
func startTollgate(t *testing.T, to testbed.Access) *tollgate {
	t.Helper()
	target, err := url.Parse(to.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(to.CA)
	forward := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	forward.Transport, forward.FlushInterval = transport, -1
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	g := &tollgate{access: to}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, lives := g.pass(r)
		if answers := g.stranger(); answers != nil && answers(w, r, n) {
			return
		}
		if lives {
			forward.ServeHTTP(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	authority := testbed.NewAuthority(t, "tollgate")
	cert, key := authority.Issue(testbed.Subject{Name: "tollgate", Hosts: []string{"127.0.0.1"}})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.EnableHTTP2 = true
	server.StartTLS()
	g.cut = server.CloseClientConnections
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	g.access.URL, g.access.CA = "https://127.0.0.1:"+port, authority.PEM
	return g
}

// odd has another one answer in place of the API server; nil: nobody does.
func (g *tollgate) odd(answers func(w http.ResponseWriter, r *http.Request, n int) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = answers
}

func (g *tollgate) stranger() func(http.ResponseWriter, *http.Request, int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.answers
}

// pass counts a step and tells whether the asker lives.
func (g *tollgate) pass(r *http.Request) (n int, lives bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	verb := r.Method
	if r.URL.Query().Has("watch") {
		verb = "WATCH"
	}
	g.steps = append(g.steps, verb+" "+r.URL.Path)
	if g.at != len(g.steps) {
		return len(g.steps), true
	}
	g.die()
	return len(g.steps), false
}

// arm has the asker die before the step, counted from now on.
func (g *tollgate) arm(at int, die func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps, g.at, g.die = nil, at, die
}

// taken are the steps since arm.
func (g *tollgate) taken() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.steps...)
}
