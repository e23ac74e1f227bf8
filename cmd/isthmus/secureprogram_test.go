package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/xdstest"
)

// secureProgram is a hub in a process of its own, with mutual TLS: one authority for the clients of GraphQL, another for
// the mesh.
type secureProgram struct {
	*hubUnderTest // asks GraphQL with a client certificate
	health        *hubUnderTest
	process       *exec.Cmd
	ca, mesh      *testbed.Authority

	graphqlAddr, xdsAddr, healthAddr string
}

// startSecureProgram starts the hub under limits of the shell, such as "ulimit -n 600", with further lines of the config
// file.
func startSecureProgram(t *testing.T, limits, config string) *secureProgram {
	t.Helper()
	dir, local := shortDir(t), netip.MustParseAddr("127.0.0.1")
	p := &secureProgram{
		ca: testbed.NewAuthority(t, "ca"), mesh: testbed.NewAuthority(t, "mesh"),
		graphqlAddr: fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local)),
		xdsAddr:     fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local)),
		healthAddr:  fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local)),
	}
	p.health = &hubUnderTest{client: &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", p.healthAddr)
		},
	}}}
	config = fmt.Sprintf("clusters: [{id: c1, provider: Mock}]\nidentity: {bundles: [{trustDomain: cluster.local, file: %s, clusters: [c1]}]}\n%s",
		write(t, filepath.Join(dir, "mesh"), string(p.mesh.PEM)), config)
	args := append([]string{
		"-c", limits + ` && exec "$0" "$@"`, os.Args[0], "serve", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", p.graphqlAddr,
		"--xds-addr", p.xdsAddr, "--health-addr", p.healthAddr, "--config", write(t, filepath.Join(dir, "x.yaml"), config),
	}, secureFlags(t, dir, p.ca)...)
	toGraphQL := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: p.ca.TLS(testbed.Subject{Name: "admin"}),
	}
	p.hubUnderTest = &hubUnderTest{dir: dir, client: &http.Client{Timeout: patience, Transport: &throughTLS{toGraphQL, p.graphqlAddr}}}
	p.process = exec.Command("sh", args...)
	p.process.Env = append(os.Environ(), asProgram+"=1")
	p.process.Stderr = &p.log
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = p.process.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = p.process.Process.Kill() // it may have ended
		<-ended
	})
	p.await(t, "the hub to be ready", p.isReady)
	return p
}

// throughTLS sends what goes to http://localhost to the hub's GraphQL address.
type throughTLS struct {
	*http.Transport
	addr string
}

func (r *throughTLS) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host, request.Host = "https", r.addr, r.addr
	return r.Transport.RoundTrip(request)
}

func (p *secureProgram) isReady() error {
	status, body, err := p.health.get("/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("it answers %d %s", status, body)
	}
	return err
}

// connection is one to xDS from an address of this machine, with a certificate of the mesh for shop/web.
func (p *secureProgram) connection(t *testing.T, from string) *grpc.ClientConn {
	t.Helper()
	return p.connectionOf(t, from, "web")
}

func (p *secureProgram) connectionOf(t *testing.T, from, account string) *grpc.ClientConn {
	t.Helper()
	who := p.mesh.TLS(testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/" + account}})
	who.RootCAs = p.ca.Pool()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IP(netip.MustParseAddr(from).AsSlice())}}
	conn, err := grpc.NewClient(p.xdsAddr, grpc.WithTransportCredentials(credentials.NewTLS(who)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// open opens a delta stream of a sidecar of shop/web and asks for its clusters.
func (p *secureProgram) open(t *testing.T, conn *grpc.ClientConn) *xdstest.Client {
	t.Helper()
	return p.openNode(t, conn, nodeOf("web-1"), map[string]any{"SERVICE_ACCOUNT": "web"})
}

func (p *secureProgram) openNode(t *testing.T, conn *grpc.ClientConn, id string, metadata map[string]any) *xdstest.Client {
	t.Helper()
	metadata["CLUSTER_ID"], metadata["NAMESPACE"] = "c1", "shop"
	said, err := structpb.NewStruct(metadata)
	if err != nil {
		t.Fatal(err)
	}
	c, err := xdstest.Open(t.Context(), conn, xdstest.Options{Delta: true, Node: &corev3.Node{Id: id, Metadata: said}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	_ = c.Send(xdstest.Request{Type: xdstest.CDS}) // a stream that is over says why to who receives
	return c
}

// receives waits until the stream was sent the resource, and accepts what comes before it.
func (p *secureProgram) receives(t *testing.T, c *xdstest.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		r, err := c.Receive(ctx)
		if err != nil {
			t.Fatalf("the stream ended before %s came: %v\n%s", name, err, p.log.String())
		}
		if err := c.Ack(r); err != nil {
			t.Fatal(err)
		}
		if _, has := r.Resources[name]; has {
			return
		}
	}
}

// anonymous is the TLS of a client that shows nothing.
func (p *secureProgram) anonymous() *tls.Config {
	return &tls.Config{RootCAs: p.ca.Pool(), NextProtos: []string{"h2"}, ServerName: "127.0.0.1"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
