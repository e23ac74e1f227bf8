package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
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

// secureFlags writes a hub's certificate files and returns their flags.
func secureFlags(t *testing.T, dir string, ca *testbed.Authority) []string {
	t.Helper()
	cert, key := ca.Issue(testbed.Subject{Name: "hub", Hosts: []string{"127.0.0.1", "hub.example"}})
	return []string{
		"--tls-cert", write(t, filepath.Join(dir, "cert"), string(cert)), "--tls-key", write(t, filepath.Join(dir, "key"), string(key)),
		"--tls-client-ca", write(t, filepath.Join(dir, "ca"), string(ca.PEM)),
	}
}

func tlsClient(config *tls.Config) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

func TestMutualTLSForGraphQLAndXDS(t *testing.T) {
	dir := shortDir(t)
	ca := testbed.NewAuthority(t, "ca")
	local := netip.MustParseAddr("127.0.0.1")
	graphql, discovery := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local)), fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local))
	args := append([]string{
		"serve", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", graphql, "--xds-addr", discovery,
		"--health-addr", "unix:" + filepath.Join(dir, "health"),
		"--config", write(t, filepath.Join(dir, "x.yaml"), "clusters:\n- {id: c1, provider: Mock}\n"),
	}, secureFlags(t, dir, ca)...)
	ctx, cancel := context.WithCancel(context.Background())
	h := &hubUnderTest{client: socketClient(filepath.Join(dir, "health"))}
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, streams{out: io.Discard, err: &h.log}) }()
	defer func() { cancel(); <-done }()
	h.await(t, "the hub to be ready", func() error {
		status, body, err := h.get("/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})

	known := ca.TLS(testbed.Subject{Name: "client"})
	stranger := testbed.NewAuthority(t, "stranger").TLS(testbed.Subject{Name: "client"})
	stranger.RootCAs = ca.Pool()
	nobody := &tls.Config{RootCAs: ca.Pool()}
	for name, c := range map[string]struct {
		config  *tls.Config
		allowed bool
	}{"known": {known, true}, "of another authority": {stranger, false}, "without a certificate": {nobody, false}} {
		answer, err := tlsClient(c.config).Get("https://" + graphql + "/graphql?query=%7B__typename%7D")
		if err == nil {
			answer.Body.Close()
		}
		if ok := err == nil && answer.StatusCode == http.StatusOK; ok != c.allowed {
			t.Errorf("GraphQL: a client %s: %v, want allowed %v", name, err, c.allowed)
		}
		if ok := speaksGRPC(t, discovery, c.config); ok != c.allowed {
			t.Errorf("xDS: a client %s: allowed %v", name, ok)
		}
	}
	if answer, err := http.Get("http://" + graphql + "/graphql?query=%7B__typename%7D"); err == nil {
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Error("plaintext is answered")
		}
	}
	if status, _, err := h.get("/graphql"); err != nil || status != http.StatusNotFound {
		t.Errorf("the health address answers /graphql with %d, %v", status, err)
	}
}

// speaksGRPC tells whether the server answers a call, were it with Unimplemented.
func speaksGRPC(t *testing.T, address string, config *tls.Config) bool {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return status.Code(conn.Invoke(ctx, "/none.None/None", nil, nil, grpc.ForceCodec(noCodec{}))) == codes.Unimplemented
}

// noCodec sends nothing.
type noCodec struct{}

func (noCodec) Marshal(any) ([]byte, error) { return nil, nil }
func (noCodec) Unmarshal([]byte, any) error { return nil }
func (noCodec) Name() string                { return "none" }

func TestBF7BadTLSFiles(t *testing.T) {
	for name, c := range map[string]struct {
		spoil map[string]string
		want  string
	}{
		"empty client CA": {map[string]string{"ca": ""}, "ca"},
		"no certificate":  {map[string]string{"cert": "nothing"}, "cert"},
		"other key":       {map[string]string{"key": otherKey(t)}, "key"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			args := append(sockets(dir), secureFlags(t, dir, testbed.NewAuthority(t, "ca"))...)
			for file, content := range c.spoil {
				write(t, filepath.Join(dir, file), content)
			}
			args = append(args[:1], args[2:]...) // not --dev
			code, _, errText := command(t, args...)
			if code != exitFailed || !strings.Contains(errText, filepath.Join(dir, c.want)) {
				t.Errorf("exit %d with %q", code, errText)
			}
		})
	}
}

func otherKey(t *testing.T) string {
	t.Helper()
	_, key := testbed.NewAuthority(t, "other").Issue(testbed.Subject{Name: "hub"})
	return string(key)
}
