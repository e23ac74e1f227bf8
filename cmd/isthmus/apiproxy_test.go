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

// apiProxy is a proxy in front of an API server. Each request is a step of the client; a
// step can be that at which the client dies.
type apiProxy struct {
	access testbed.Access

	cut func() // ends the connections

	mu    sync.Mutex
	steps []string
	at    int    // the step, from 1; 0: none
	die   func() // returns when the client is dead
	// answers, if not nil, answers in place of the API server, or does not.
	answers func(w http.ResponseWriter, r *http.Request, n int) bool
}

// startAPIProxy lets the access through to the API server.
func startAPIProxy(t *testing.T, to testbed.Access) *apiProxy {
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
	p := &apiProxy{access: to}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, lives := p.pass(r)
		if answers := p.substitute(); answers != nil && answers(w, r, n) {
			return
		}
		if lives {
			forward.ServeHTTP(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	authority := testbed.NewAuthority(t, "api-proxy")
	cert, key := authority.Issue(testbed.Subject{Name: "api-proxy", Hosts: []string{"127.0.0.1"}})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.EnableHTTP2 = true
	server.StartTLS()
	p.cut = server.CloseClientConnections
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.access.URL, p.access.CA = "https://127.0.0.1:"+port, authority.PEM
	return p
}

// answerWith answers in place of the API server; nil: the API server answers.
func (p *apiProxy) answerWith(answers func(w http.ResponseWriter, r *http.Request, n int) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = answers
}

func (p *apiProxy) substitute() func(http.ResponseWriter, *http.Request, int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers
}

// pass counts a step and tells whether the client lives.
func (p *apiProxy) pass(r *http.Request) (n int, lives bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	verb := r.Method
	if r.URL.Query().Has("watch") {
		verb = "WATCH"
	}
	p.steps = append(p.steps, verb+" "+r.URL.Path)
	if p.at != len(p.steps) {
		return len(p.steps), true
	}
	p.die()
	return len(p.steps), false
}

// killBefore kills the client before the step, counted from now on.
func (p *apiProxy) killBefore(at int, die func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps, p.at, p.die = nil, at, die
}

// taken are the steps since killBefore.
func (p *apiProxy) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.steps...)
}
