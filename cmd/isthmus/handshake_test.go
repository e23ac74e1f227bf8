package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// knock opens a connection to xDS from an address of this machine, has what use it, and waits until the hub has closed
// it.
func (p *secureProgram) knock(t *testing.T, from string, what func(net.Conn) net.Conn) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IP(netip.MustParseAddr(from).AsSlice())}}
	raw, err := dialer.DialContext(t.Context(), "tcp", p.xdsAddr)
	must(t, err)
	defer raw.Close()
	conn := what(raw)
	for err == nil {
		_, err = conn.Read(make([]byte, 1024))
	}
}

func speaks(config *tls.Config) func(net.Conn) net.Conn {
	return func(raw net.Conn) net.Conn {
		conn := tls.Client(raw, config)
		_ = conn.Handshake() // in TLS 1.3 the client may be done before the hub refuses it
		return conn
	}
}

func speaksPlainly(raw net.Conn) net.Conn {
	_, _ = raw.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	return raw
}

// saidOf are the lines of the log about failed handshakes that have all of the words.
func (p *secureProgram) saidOf(words ...string) (found []string) {
	for line := range strings.Lines(p.log.String()) {
		has := strings.Contains(line, `level=WARN msg="TLS handshake failed" listener=xds`)
		for _, word := range words {
			has = has && strings.Contains(line, word)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

// TestR46FailedHandshakesAreLoggedAndCounted: each with its reason and the source of the caller. A flood of them leaves a
// few lines, and the next caller's line says how many are missing.
func TestR46FailedHandshakesAreLoggedAndCounted(t *testing.T) {
	p := startSecureProgram(t, "true", "")
	stranger := testbed.NewAuthority(t, "stranger")
	shown := stranger.TLS(testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}}).Certificates[0]
	untrusted := p.anonymous()
	untrusted.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
		error,
	) {
		return &shown, nil
	} // though the hub does not ask for it
	distrustful := p.anonymous()
	distrustful.RootCAs = stranger.Pool()
	old := p.anonymous()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for reason, what := range map[string]func(net.Conn) net.Conn{
		"certificate": speaks(untrusted), "rejected": speaks(distrustful), "protocol": speaks(old), "not_tls": speaksPlainly,
	} {
		p.knock(t, "127.0.0.1", what)
		p.health.awaitMetrics(t, fmt.Sprintf(`isthmus_tls_handshake_failures_total{listener="xds",reason=%q} 1`, reason))
		p.await(t, "the line about "+reason, func() error {
			if n := len(p.saidOf("prefix=127.0.0.1/32", "reason="+reason, "err=")); n != 1 {
				return fmt.Errorf("there are %d", n)
			}
			return nil
		})
	}
	p.knock(t, "127.0.0.1", func(raw net.Conn) net.Conn { _ = raw.Close(); return raw })
	p.health.awaitMetrics(t, `isthmus_tls_handshake_failures_total{listener="xds",reason="closed"} 1`)
	for range 200 {
		p.knock(t, "127.0.0.1", speaksPlainly)
	}
	p.health.awaitMetrics(t, `isthmus_tls_handshake_failures_total{listener="xds",reason="not_tls"} 201`)
	p.knock(t, "127.0.0.2", speaksPlainly)
	p.await(t, "the line about another source", func() error {
		if n := len(p.saidOf("prefix=127.0.0.2/32", "suppressed=")); n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	if n := len(p.saidOf()); n > 100 || len(p.saidOf("reason=closed")) > 0 {
		t.Errorf("%d lines about failed handshakes:\n%s", n, p.log.String())
	}
}
