package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// operator is a client of GraphQL that keeps its connection.
type operator struct {
	t      *testing.T
	p      *secureProgram
	client *http.Client
	opened int // connections
}

func (p *secureProgram) operator(t *testing.T, of *testbed.Authority, http2 bool) *operator {
	config := of.TLS(testbed.Subject{Name: "admin"})
	config.RootCAs, config.ClientSessionCache = p.ca.Pool(), tls.NewLRUClientSessionCache(1)
	return &operator{t: t, p: p, client: &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}}}
}

// ask returns the status of an answer and the answer; an error is a connection that the hub does not take.
func (o *operator) ask() (status int, body string, err error) {
	o.t.Helper()
	trace := &httptrace.ClientTrace{TLSHandshakeDone: func(tls.ConnectionState, error) { o.opened++ }}
	q, err := http.NewRequestWithContext(httptrace.WithClientTrace(o.t.Context(), trace), http.MethodPost, "https://"+o.p.graphqlAddr+"/graphql",
		strings.NewReader(`{"query": "{ hub { clusterID } }"}`))
	must(o.t, err)
	q.Header.Set("Content-Type", "application/json")
	answer, err := o.client.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(data), err
}

// watch opens a stream of changes, over a WebSocket or as events, and returns what comes of it until its end.
func (p *secureProgram) watch(t *testing.T, of *testbed.Authority, socket bool) (end func() string) {
	t.Helper()
	config := of.TLS(testbed.Subject{Name: "admin"})
	config.RootCAs, config.NextProtos = p.ca.Pool(), []string{"http/1.1"}
	conn, err := tls.Dial("tcp", p.graphqlAddr, config)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	const query = `{"query": "subscription{changes{__typename}}"}`
	sends := fmt.Appendf(nil, "POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		len(query), query)
	if socket {
		sends = append([]byte(strings.Replace(upgrade, "localhost", "127.0.0.1", 1)+"\r\n"), watching...)
	}
	_, err = conn.Write(sends)
	must(t, err)
	reader := bufio.NewReader(conn)
	var before strings.Builder
	for !strings.Contains(before.String(), "__typename") {
		b, err := reader.ReadByte()
		if err != nil {
			t.Fatalf("the stream ends after %q: %v", before.String(), err)
		}
		before.WriteByte(b)
	}
	return func() string {
		rest, _ := io.ReadAll(reader) // a connection may be cut
		return string(rest)
	}
}

// TestU53OperatorsEndWithTheirCA: what is open ends when --tls-client-ca no longer has the CA of the client: requests over
// connections of both protocols, WebSockets and event streams. TLS sessions are not resumed. Clients of a CA that stays keep theirs.
func TestU53OperatorsEndWithTheirCA(t *testing.T) {
	t.Parallel()
	p := startSecureProgram(t, "true", "")
	next := testbed.NewAuthority(t, "next")
	trust := func(authorities ...*testbed.Authority) {
		t.Helper()
		var all strings.Builder
		for _, a := range authorities {
			all.Write(a.PEM)
		}
		must(t, os.WriteFile(filepath.Join(p.dir, "ca"), []byte(all.String()), 0o600))
	}
	var old, stay []*operator
	for _, http2 := range []bool{false, true} {
		old, stay = append(old, p.operator(t, p.ca, http2)), append(stay, p.operator(t, next, http2))
	}
	trust(p.ca, next)
	for _, o := range append(old, stay...) {
		p.await(t, "the CA to be trusted", func() error {
			status, body, err := o.ask()
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%d %s", status, body)
			}
			return err
		})
		o.opened = 0
	}
	sockets, events := p.watch(t, p.ca, true), p.watch(t, p.ca, false)
	trust(next)
	for _, o := range old {
		var status int
		var body string
		var err error
		p.await(t, "the client to be refused", func() error {
			status, body, err = o.ask()
			if err == nil && status == http.StatusOK {
				return errors.New("requests are answered")
			}
			return nil
		})
		if err != nil || status != http.StatusForbidden || !strings.Contains(body, "no CA of --tls-client-ca") || o.opened != 0 {
			t.Errorf("over the open connection: %d %s, %v, on connection %d", status, body, err, o.opened)
		}
		if status, body, err := o.ask(); err == nil {
			t.Errorf("over a new connection: %d %s", status, body)
		}
	}
	if rest := sockets(); !strings.Contains(rest, "Forbidden: no CA of --tls-client-ca") {
		t.Errorf("the WebSocket ends with %q", rest)
	}
	if rest := events(); strings.Contains(rest, "complete") {
		t.Errorf("the stream of events ends with %q", rest)
	}
	for _, o := range stay {
		if status, body, err := o.ask(); err != nil || status != http.StatusOK || o.opened != 0 {
			t.Errorf("a client of the CA that stays: %d %s, %v, after %d new connections", status, body, err, o.opened)
		}
	}
}
