package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// flood opens connections to the address from each of eight sources, which send the text and nothing more.
func (p *secureProgram) flood(t *testing.T, addr string, each int, text string) {
	t.Helper()
	for n := range 8 * each {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n%8))}}
		connection, err := from.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		_, _ = io.WriteString(connection, text) // it may be closed already
	}
}

func dialTCP(t *testing.T, addr string) net.Conn {
	t.Helper()
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// endless is a request to health whose body never comes.
const endless = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"

// TestR01HalfOpenConnections: eight addresses open more connections to each listener than it takes, and finish no TLS
// handshake and no request on them. New requests to GraphQL and health, new and open streams of xDS are served meanwhile, and
// a client whose handshake takes as long as the flood is not pushed out.
func TestR01HalfOpenConnections(t *testing.T) {
	p := startSecureProgram(t, "ulimit -Sn 256 && ulimit -Hn 600", "") // GraphQL: 120 connections, xDS: 360, health: 30
	open := p.open(t, p.connection(t, "127.0.0.1"))
	p.flood(t, p.xdsAddr, 60, "")
	p.slowDuring(t, func() { p.flood(t, p.graphqlAddr, 30, "") })
	p.flood(t, p.healthAddr, 8, endless)
	for range 10 {
		p.flood(t, p.xdsAddr, 1, "\x16\x03\x01\x02\x00") // a fragment of a ClientHello
		p.flood(t, p.graphqlAddr, 1, "\x16\x03\x01\x02\x00")
		p.flood(t, p.healthAddr, 1, "GET /readyz HTTP/1.1\r\nHost: ")
		if err := p.applyHost("during"); err != nil {
			t.Fatalf("GraphQL: %v\n%s", err, p.log.String())
		}
		if err := p.isReady(); err != nil {
			t.Fatalf("health: %v", err)
		}
	}
	const during = "outbound|80||during.example"
	p.receives(t, open, during)
	p.receives(t, p.open(t, p.connection(t, "127.0.0.1")), during)
	_, metrics, err := p.health.get("/metrics")
	for _, listener := range []string{"graphql", "xds", "health"} {
		line := fmt.Sprintf(`isthmus_connections_refused_total{listener=%q,reason="total"} `, listener)
		if _, n, has := strings.Cut(metrics, line); err != nil || !has || strings.HasPrefix(n, "0\n") {
			t.Errorf("the metrics do not count what was closed at %s: %v", listener, err)
		}
	}
}

// slowDuring wants a handshake that begins before something else, and ends after it, to be
// served. The hub waits for it for 10 s, which a busy machine may take: then it is done again.
func (p *secureProgram) slowDuring(t *testing.T, during func()) {
	t.Helper()
	const promised, tries = 10 * time.Second, 5
	for range tries {
		began, slow := time.Now(), dialTCP(t, p.graphqlAddr)
		during()
		err := p.asksOn(t, slow)
		if err == nil {
			return
		}
		if took := time.Since(began); took < promised {
			t.Fatalf("a client whose handshake takes %v: %v", took, err)
		}
	}
	t.Fatalf("each of %d handshakes took longer than %v", tries, promised)
}

// asksOn finishes the TLS handshake of a GraphQL connection and sends a request on it.
func (p *secureProgram) asksOn(t *testing.T, raw net.Conn) error {
	t.Helper()
	config := p.ca.TLS(testbed.Subject{Name: "admin"})
	config.ServerName, config.NextProtos = "127.0.0.1", nil
	connection := tls.Client(raw, config)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1/graphql?query=%7B__typename%7D", nil)
	must(t, err)
	if err := request.Write(connection); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(connection), request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it is answered %s", answer.Status)
	}
	return nil
}
