package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"isthmus.dev/isthmus/deploy/testbed"
)

// TestU51OperatorsEndWithTheirCertificates: a connection that was opened before the certificate expired is good for
// requests no longer.
func TestU51OperatorsEndWithTheirCertificates(t *testing.T) {
	t.Parallel()
	p := startSecureProgram(t, "true", "")
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %t", http2), func(t *testing.T) {
			t.Parallel()
			config := p.ca.TLS(testbed.Subject{Name: "admin", NotAfter: time.Now().Add(20 * time.Second)})
			client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}}
			ask := func() (status int, body string, err error) {
				q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+p.graphqlAddr+"/graphql",
					strings.NewReader(`{"query": "{ hub { clusterID } }"}`))
				must(t, err)
				q.Header.Set("Content-Type", "application/json")
				answer, err := client.Do(q)
				if err != nil {
					return 0, "", err
				}
				defer answer.Body.Close()
				data, err := io.ReadAll(answer.Body)
				return answer.StatusCode, string(data), err
			}
			status, body, err := ask()
			if err != nil || status != http.StatusOK {
				t.Fatalf("with a valid certificate: %d %s, %v", status, body, err)
			}
			p.await(t, "the certificate to be refused", func() error {
				status, body, err = ask()
				if err == nil && status == http.StatusOK {
					return errors.New("requests are answered")
				}
				return nil
			})
			// An answer comes on a connection that is older: the last lines show that the hub takes no new one.
			if err != nil || status != http.StatusForbidden || !strings.Contains(body, "has expired") {
				t.Errorf("afterwards: %d %s, %v", status, body, err)
			}
			if _, _, err := ask(); err == nil {
				t.Error("the hub takes a new connection with the certificate")
			}
		})
	}
}

// TestU51StreamsEndWithTheirCertificates, and the others go on.
func TestU51StreamsEndWithTheirCertificates(t *testing.T) {
	t.Parallel()
	p := startSecureProgram(t, "true", "")
	who := p.mesh.TLS(testbed.Subject{
		Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}, NotAfter: time.Now().Add(20 * time.Second),
	})
	who.RootCAs = p.ca.Pool()
	conn, err := grpc.NewClient(p.xdsAddr, grpc.WithTransportCredentials(credentials.NewTLS(who)))
	must(t, err)
	defer conn.Close()
	ends, stays := p.open(t, conn), p.open(t, p.connection(t, "127.0.0.1"))
	must(t, p.applyHost("before"))
	p.receives(t, ends, "outbound|80||before.example")
	if err := p.endOf(t, ends); status.Code(err) != codes.Unauthenticated && status.Code(err) != codes.PermissionDenied {
		t.Errorf("the stream ends with %v", err)
	}
	must(t, p.applyHost("after"))
	p.receives(t, stays, "outbound|80||after.example")
}

// TestU51ExpiredServingCertificatesAreNotTaken: the hub keeps what it has, says so, and takes the next good one.
func TestU51ExpiredServingCertificatesAreNotTaken(t *testing.T) {
	t.Parallel()
	p := startSecureProgram(t, "true", "")
	replace := func(subject testbed.Subject) {
		t.Helper()
		cert, key := p.ca.Issue(subject)
		must(t, os.WriteFile(filepath.Join(p.dir, "cert"), cert, 0o600))
		must(t, os.WriteFile(filepath.Join(p.dir, "key"), key, 0o600))
	}
	serves := func() (string, error) {
		dialer := &tls.Dialer{Config: p.ca.TLS(testbed.Subject{Name: "admin"})}
		conn, err := dialer.DialContext(t.Context(), "tcp", p.graphqlAddr)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName, nil
	}
	hosts := []string{"127.0.0.1", "hub.example"}
	replace(testbed.Subject{Name: "expired", Hosts: hosts, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	p.await(t, "the expired certificate to be reported", func() error {
		if !strings.Contains(p.log.String(), "the TLS files cannot be used now") || !strings.Contains(p.log.String(), "not now") {
			return errors.New("nothing is reported")
		}
		return nil
	})
	if name, err := serves(); err != nil || name != "hub" {
		t.Errorf("the hub serves with %q, %v", name, err)
	}
	replace(testbed.Subject{Name: "next", Hosts: hosts})
	p.await(t, "the next certificate to be used", func() error {
		name, err := serves()
		if err == nil && name != "next" {
			err = fmt.Errorf("it is %q", name)
		}
		return err
	})
}
