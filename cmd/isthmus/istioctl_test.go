package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/xds/xdstest"
)

// istioctlRig is a hub that istioctl asks, with one sidecar.
type istioctlRig struct {
	t                       *testing.T
	dir, discovery, graphql string
	health                  string
	operators, mesh         *testbed.Authority
	hub                     *hubUnderTest
}

const mayAsk = "spiffe://cluster.local/ns/istio-system/sa/default"

func startIstioctlRig(t *testing.T) *istioctlRig {
	t.Helper()
	r := &istioctlRig{t: t, dir: shortDir(t), operators: testbed.NewAuthority(t, "operators"), mesh: testbed.NewAuthority(t, "mesh")}
	local := netip.MustParseAddr("127.0.0.1")
	for _, address := range []*string{&r.graphql, &r.discovery, &r.health} {
		*address = fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t, nil, local))
	}
	config := fileOf(t,
		"debug: {clients: [%q, alice], portForward: true}\nclusters: [{id: c1, provider: Mock}]\nidentity: {bundles: [{trustDomain: cluster.local, file: %s, clusters: [c1]}]}\n",
		mayAsk, write(t, filepath.Join(r.dir, "mesh"), string(r.mesh.PEM)))
	args := append([]string{
		"serve", "--data-dir", filepath.Join(r.dir, "data"), "--graphql-addr", r.graphql, "--xds-addr", r.discovery,
		"--health-addr", r.health, "--config", config,
	}, secureFlags(t, r.dir, r.operators)...)
	ctx, cancel := context.WithCancel(context.Background())
	r.hub = &hubUnderTest{client: clientOf("tcp", r.health)}
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, cmdutil.Streams{Out: io.Discard, Err: &r.hub.log}) }()
	t.Cleanup(func() { cancel(); <-done })
	r.hub.await(t, "the hub to be ready", func() error {
		status, body, err := r.hub.get("/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", status, body)
		}
		return err
	})
	return r
}

// sidecar connects a proxy that accepts its clusters and does not answer about listeners.
func (r *istioctlRig) sidecar() {
	r.t.Helper()
	secure := r.mesh.TLS(testbed.Subject{Name: "web", Hosts: []string{"spiffe://cluster.local/ns/shop/sa/web"}})
	secure.RootCAs, secure.ServerName = r.operators.Pool(), "127.0.0.1"
	conn, err := grpc.NewClient(r.discovery, grpc.WithTransportCredentials(credentials.NewTLS(secure)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	said, err := structpb.NewStruct(map[string]any{
		"CLUSTER_ID": "c1", "NAMESPACE": "shop", "SERVICE_ACCOUNT": "web",
		"ISTIO_VERSION": "1.32.0",
	})
	if err != nil {
		r.t.Fatal(err)
	}
	node := &corev3.Node{Id: "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local", Metadata: said}
	client, err := xdstest.Open(r.t.Context(), conn, xdstest.Options{Delta: true, Node: node})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	for _, kind := range []string{xdstest.CDS, xdstest.LDS} {
		if err := client.Send(xdstest.Request{Type: kind}); err != nil {
			r.t.Fatal(err)
		}
		answer, err := client.Receive(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		if kind == xdstest.CDS {
			if err := client.Ack(answer); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// as runs istioctl with a certificate of the mesh.
func (r *istioctlRig) as(workload string, args ...string) (string, error) {
	r.t.Helper()
	certs := r.t.TempDir()
	chain, key := r.mesh.Issue(testbed.Subject{Name: "istioctl", Hosts: []string{workload}})
	write(r.t, filepath.Join(certs, "cert-chain.pem"), string(chain))
	write(r.t, filepath.Join(certs, "key.pem"), string(key))
	write(r.t, filepath.Join(certs, "root-cert.pem"), string(r.operators.PEM))
	return testbed.Istioctl(r.t, append(args, "--xds-address", r.discovery, "--cert-dir", certs, "--authority", "127.0.0.1")...)
}

// TestU13IstioctlAsksTheHub: Istio's own command line shows the proxies, what they accepted,
// the pages and the version; who is not named is refused.
func TestU13IstioctlAsksTheHub(t *testing.T) {
	r := startIstioctlRig(t)
	r.sidecar()
	for _, c := range []struct {
		args string
		want []string
	}{
		{"proxy-status --revision default", []string{"\nweb-1.shop ", "c1", "1.32.0", "2 (CDS,LDS)"}},
		{"proxy-status -v 1 --revision default", []string{"web-1.shop", "SYNCED (", "STALE (", "IGNORED"}},
		{
			"x internal-debug syncz --revision default",
			[]string{`"proxy": "web-1.shop"`, `"node_id": "sidecar~10.1.0.9~web-1.shop~shop.svc.cluster.local"`},
		},
		{"x internal-debug clusterz --revision default", []string{`"id": "c1"`}},
		{"x internal-debug --list --revision default", []string{"clusterz", "registryz", "syncz"}},
		{"x version", []string{"development", "1.32.0"}},
	} {
		output, err := r.as(mayAsk, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("istioctl %s: %v\n%s\n%s", c.args, err, output, r.hub.log.String())
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(output, want) {
				t.Errorf("istioctl %s lacks %q:\n%s", c.args, want, output)
			}
		}
	}
	r.compares()
	if output, err := r.as("spiffe://cluster.local/ns/shop/sa/web", "proxy-status", "--revision", "default"); err == nil ||
		strings.Contains(output, "web-1.shop") {
		t.Errorf("a workload that is not named gets %s, %v", output, err)
	}
}

// compares has istioctl compare a proxy that has what it was sent with what the hub sent.
func (r *istioctlRig) compares() {
	r.t.Helper()
	dump, err := r.as(mayAsk, "x", "internal-debug", "config_dump?proxyID=web-1.shop", "--revision", "default")
	if err != nil {
		r.t.Fatalf("%v\n%s", err, dump)
	}
	file := write(r.t, filepath.Join(r.t.TempDir(), "dump"), dump)
	output, err := r.as(mayAsk, "proxy-status", "web-1.shop", "--file", file, "--revision", "default")
	if err != nil || !strings.Contains(output, "Clusters Match\nListeners Match\nRoutes Match") ||
		!strings.Contains(dump, "BlackHoleCluster") {
		r.t.Errorf("istioctl compares %s: %s, %v", dump, output, err)
	}
}

// TestU15DebugPagesAreForThoseWhoAreNamed: by the certificate of an operator, and at the
// health address for programs of the hub's own pod.
func TestU15DebugPagesAreForThoseWhoAreNamed(t *testing.T) {
	r := startIstioctlRig(t)
	for name, want := range map[string]int{"alice": http.StatusOK, "bob": http.StatusForbidden} {
		client := tlsClient(r.operators.TLS(testbed.Subject{Name: name}))
		for _, path := range []string{"/debug/syncz", "/debug/clusterz", "/version"} {
			answer, err := client.Get("https://" + r.graphql + path)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s gets %s at %s", name, answer.Status, path)
			}
		}
	}
	status, body, err := r.hub.get("/debug/clusterz")
	var clusters []struct{ ID string }
	err = errors.Join(err, json.Unmarshal([]byte(body), &clusters))
	if err != nil || status != http.StatusOK ||
		len(clusters) != 2 || clusters[0].ID != "c1" {
		t.Errorf("the health address answers %d %s, %v", status, body, err)
	}
	if status, _, err := r.hub.get("/debug/pprof"); err != nil || status != http.StatusNotFound {
		t.Errorf("an unknown page is %d, %v", status, err)
	}
	quiet := startHub(t)
	for _, path := range []string{"/debug/registryz", "/version"} {
		if status, _, err := quiet.get(path); err != nil || status != http.StatusForbidden {
			t.Errorf("a hub that names nobody answers %s with %d, %v", path, status, err)
		}
	}
}
