package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/xds/xdstest"
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
	return &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

func TestMutualTLSForGraphQLAndXDS(t *testing.T) {
	dir := shortDir(t)
	ca, mesh := testbed.NewAuthority(t, "ca"), testbed.NewAuthority(t, "mesh")
	local := netip.MustParseAddr("127.0.0.1")
	graphql, discovery := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local)),
		fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local))
	args := append([]string{
		"serve", "--data-dir", filepath.Join(dir, "data"), "--graphql-addr", graphql, "--xds-addr", discovery,
		"--health-addr", "unix:" + filepath.Join(dir, "health"),
		"--config", write(t, filepath.Join(dir, "x.yaml"),
			fmt.Sprintf("clusters:\n- {id: c1, provider: Mock}\nidentity: {bundles: [{trustDomain: cluster.local, file: %s, clusters: [c1]}]}\n",
				write(t, filepath.Join(dir, "mesh"), string(mesh.PEM)))),
	}, secureFlags(t, dir, ca)...)
	h := startWithHealthAt(t, filepath.Join(dir, "health"), args)

	web := testbed.Subject{Name: "client", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}}
	of := func(authority *testbed.Authority) *tls.Config {
		config := authority.TLS(web)
		config.RootCAs = ca.Pool()
		return config
	}
	stranger, nobody := of(testbed.NewAuthority(t, "stranger")), &tls.Config{RootCAs: ca.Pool()}
	known := of(mesh)
	for name, c := range map[string]struct {
		graphql, xds *tls.Config
		allowed      bool
	}{
		"known": {of(ca), known, true}, "of another authority": {stranger, stranger, false}, "without a certificate": {nobody, nobody, false},
		"of the authority of the other door": {known, of(ca), false},
	} {
		answer, err := tlsClient(c.graphql).Get("https://" + graphql + "/graphql?query=%7B__typename%7D")
		if err == nil {
			answer.Body.Close()
		}
		if ok := err == nil && answer.StatusCode == http.StatusOK; ok != c.allowed {
			t.Errorf("GraphQL: a client %s: %v, want allowed %v", name, err, c.allowed)
		}
		if err := getsClusters(t, discovery, c.xds, "c1"); (err == nil) != c.allowed || err != nil && status.Code(err) != codes.Unauthenticated {
			t.Errorf("xDS: a client %s: %v", name, err)
		}
	}
	if err := getsClusters(t, discovery, known, "c2"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("xDS: a node of another cluster: %v", err)
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

// getsClusters asks as the sidecar of a pod of shop/web, and returns why it gets
// nothing.
func getsClusters(t *testing.T, address string, config *tls.Config, cluster string) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	said, err := structpb.NewStruct(map[string]any{"CLUSTER_ID": cluster, "NAMESPACE": "shop", "SERVICE_ACCOUNT": "web"})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{Id: "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local", Metadata: said}
	client, err := xdstest.Open(ctx, conn, xdstest.Options{Delta: true, Node: node})
	if err != nil {
		return err
	}
	defer client.Close()
	_ = client.Send(xdstest.Request{Type: xdstest.CDS}) // a stream that is over says why below
	_, err = client.Receive(ctx)
	return err
}

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
			if code != cmdutil.ExitFailed || !strings.Contains(errText, filepath.Join(dir, c.want)) {
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
