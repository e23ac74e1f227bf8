package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/xds/xdstest"
)

// secureHub is a hub with mutual TLS, and the authority of the hub and the mesh.
type secureHub struct {
	*hubUnderTest
	ca  *testbed.Authority
	xds string
}

func startSecureHub(t *testing.T, more ...string) secureHub {
	t.Helper()
	dir, local := shortDir(t), netip.MustParseAddr("127.0.0.1")
	h := secureHub{
		hubUnderTest: &hubUnderTest{dir: dir, client: socketClient(filepath.Join(dir, "health"))},
		ca:           testbed.NewAuthority(t, "ca"),
	}
	h.xds = fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local))
	args := append([]string{
		"serve", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local)),
		"--xds-addr", h.xds, "--health-addr", "unix:" + filepath.Join(dir, "health"),
		"--config", write(t, filepath.Join(dir, "x.yaml"),
			fmt.Sprintf("clusters:\n- {id: c1, provider: Mock}\nidentity: {bundles: [{trustDomain: cluster.local, file: %s, clusters: [c1, hub]}]}\n", filepath.Join(dir, "roots"))),
	}, append(h.certify(t), more...)...)
	write(t, filepath.Join(dir, "roots"), string(h.ca.PEM))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, cmdutil.Streams{Out: io.Discard, Err: &h.log}) }()
	t.Cleanup(func() { cancel(); <-done })
	h.await(t, "the hub to be ready", func() error {
		if len(done) > 0 {
			t.Fatalf("the hub ended:\n%s", h.log.String())
		}
		status, body, err := h.get("/readyz")
		if err == nil && status != 200 {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	return h
}

// certify writes the hub's certificate files and returns their flags. Operators
// have a CA of their own.
func (h secureHub) certify(t *testing.T) []string {
	t.Helper()
	flags := secureFlags(t, h.dir, h.ca)
	write(t, filepath.Join(h.dir, "ca"), string(testbed.NewAuthority(t, "operators").PEM))
	return flags
}

// stream opens a stream as a sidecar of shop/web, and takes its clusters.
func (h secureHub) stream(t *testing.T) *xdstest.Client {
	t.Helper()
	who := h.ca.TLS(testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}})
	conn, err := grpc.NewClient(h.xds, grpc.WithTransportCredentials(credentials.NewTLS(who)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	said, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "shop", "SERVICE_ACCOUNT": "web"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := xdstest.Open(t.Context(), conn, xdstest.Options{Delta: true, Node: &corev3.Node{Id: nodeOf("web-1"), Metadata: said}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Send(xdstest.Request{Type: xdstest.CDS}); err != nil {
		t.Fatal(err)
	}
	h.answered(t, c)
	return c
}

// answered takes the next response and accepts it.
func (h secureHub) answered(t *testing.T, c *xdstest.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := c.Receive(ctx)
	if err != nil {
		t.Fatalf("the stream ended: %v", err)
	}
	if err := c.Ack(r); err != nil {
		t.Fatal(err)
	}
}

// shown is the certificate that the hub shows now.
func (h secureHub) shown() (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", h.xds, &tls.Config{RootCAs: h.ca.Pool(), NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// TestF83HubCertificateRotated: a stream that is open goes on, and handshakes show
// the new certificate within 10 s.
func TestF83HubCertificateRotated(t *testing.T) {
	t.Parallel() // it waits most of the time
	h := startSecureHub(t)
	open := h.stream(t)
	old, err := h.shown()
	if err != nil {
		t.Fatal(err)
	}
	clock, rotated := testbed.StartClock(t), time.Now()
	h.certify(t) // rewrites the files
	h.await(t, "the new certificate", func() error {
		now, err := h.shown()
		if err == nil && now.SerialNumber.Cmp(old.SerialNumber) == 0 && string(now.Raw) == string(old.Raw) {
			err = fmt.Errorf("it shows the old one")
		}
		return err
	})
	if took := clock.Since(rotated); took > 10*time.Second {
		t.Errorf("the new certificate is shown after %s", took)
	}
	if err := open.Send(xdstest.Request{Type: xdstest.LDS}); err != nil { // on the stream that was open before
		t.Fatal(err)
	}
	h.answered(t, open)
	h.stream(t)
}

// TestF84TrustBundleChanged: a client that was trusted because of a root that is trusted no
// more has its stream closed within a minute, and does not come back.
func TestF84TrustBundleChanged(t *testing.T) {
	t.Parallel()
	h := startSecureHub(t)
	open := h.stream(t)
	clock, changed := testbed.StartClock(t), time.Now()
	path := filepath.Join(h.dir, "roots")
	write(t, path+".new", string(testbed.NewAuthority(t, "another").PEM))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	_, err := open.Receive(ctx)
	if took := clock.Since(changed); err == nil || ctx.Err() != nil || took > time.Minute {
		t.Errorf("after %s the stream ends with %v", took, err)
	}
	if err := getsClusters(t, h.xds, h.ca.TLS(testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}}),
		"c1"); err == nil {
		t.Error("the client is trusted again")
	}
}
