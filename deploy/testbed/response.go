package testbed

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Response is the whole answer to one HTTP request, or the error instead.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
}

// Decode reads the JSON body into a value and ends the test if it cannot.
func (r Response) Decode(t testing.TB, into any) {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("reading an answer: %v", r.Err)
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		t.Fatalf("reading an answer with status %d: %v: %.300s", r.Status, err, r.Body)
	}
}

// failed says why the response is not one of success, else nil.
func (r Response) failed() error {
	if r.Err != nil {
		return r.Err
	}
	if r.Status < 200 || r.Status > 299 {
		return fmt.Errorf("status %d: %.500s", r.Status, r.Body)
	}
	return nil
}

// Client returns a client whose connections start in the namespace, are used
// once and follow no redirect. It answers within 10 s.
func (n *Namespace) Client(config *tls.Config) *http.Client {
	return newClient(n.DialContext, config, 10*time.Second)
}

// administratorLimit is for what a test itself asks of its programs: a request that fails ends
// the test, so that a machine with other work has time to answer.
const administratorLimit = 2 * time.Minute

// patientClient is a Client for the testbed's own requests.
func (n *Namespace) patientClient(config *tls.Config) *http.Client {
	return newClient(n.DialContext, config, administratorLimit)
}

func newClient(dial func(ctx context.Context, network, address string) (net.Conn, error), config *tls.Config,
	limit time.Duration,
) *http.Client {
	return &http.Client{
		Timeout: limit,
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Get asks for a URL from inside the namespace. Its host is a literal address;
// the headers are names and values in turn, Host among them.
func (n *Namespace) Get(url string, headers ...string) Response {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return Response{Err: err}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	return send(n.Client(nil), request)
}

func send(client *http.Client, request *http.Request) Response {
	answer, err := client.Do(request)
	if err != nil {
		return Response{Err: err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: body, Err: err}
}

// probe returns nil once a URL answers with success.
func probe(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		return send(client, request).failed()
	}
}

// literal returns the address that a text is, else the zero Addr.
func literal(text string) netip.Addr {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return address
}

// writeFile writes a file for a program and returns its path.
func writeFile(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatalf("writing %s: %v", name, err)
	}
	return path
}
