package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/bridge"
	"isthmus.dev/isthmus/deploy/testbed"
)

// badCaller is somebody in the network between who tries a gateway.
type badCaller struct {
	name string
	tls  *tls.Config // nil: plain text
	stat string      // of whom refuses, which counts it
	at   *bridge.Pod
}

const (
	refusedByGateway = "listener.0.0.0.0_15443.no_filter_chain_match"
	refusedBySidecar = "listener.0.0.0.0_15006.ssl.fail_verify_" // and why
)

// testBadCallers: what a gateway or the sidecar behind it refuses is counted, and no
// byte of it reaches a workload, which is looked at on the wire.
func testBadCallers(t *testing.T, w *bridge.Topology) {
	stranger := testbed.NewNamespace(t, "stranger")
	stranger.Join(w.Wan, "192.0.2.9")
	far := w.Site("c2")
	entry := far.Gateways[0]
	wire := far.Workload.Sniff()
	defer wire.Close()
	served := "a-word-of-a-good-caller"
	good := meshCaller(t, w, "spiffe://cluster.local/ns/shop/sa/stranger", time.Hour)
	if answer, err := call(stranger, entry, good, served); err != nil || !strings.Contains(answer, "200 OK") {
		t.Fatalf("a caller of the mesh is answered %q, %v", answer, err)
	}
	if !wire.Saw(served) {
		t.Error("the request of a caller of the mesh was not seen at the workload")
	}
	for i, c := range badCallers(t, w) {
		before, marker := c.at.Envoy.Stat(c.stat), fmt.Sprintf("a-word-of-bad-caller-%d", i)
		answer, err := call(stranger, entry, c.tls, marker)
		if answer != "" || err == nil {
			t.Errorf("%s: is answered %q", c.name, answer)
		}
		testbed.WaitFor(t, patience, "the refusal of "+c.name, func() error {
			if n := c.at.Envoy.Stat(c.stat); n <= before {
				return fmt.Errorf("%s is %d", c.stat, n)
			}
			return nil
		})
		if wire.Saw(marker) {
			t.Errorf("%s: what was sent is seen at the workload", c.name)
		}
		t.Logf("%s: %v; counted in %s", c.name, err, c.stat)
	}
}

func badCallers(t *testing.T, w *bridge.Topology) []badCaller {
	entry, behind := &w.Site("c2").Gateways[0].Pod, w.Site("c2").Workload
	const mesh = "spiffe://cluster.local/ns/shop/sa/stranger"
	named := func(sni, alpn string) *tls.Config {
		c := meshCaller(t, w, mesh, time.Hour)
		c.ServerName, c.NextProtos = sni, []string{alpn}
		return c
	}
	foreign := testbed.NewAuthority(t, "foreign").TLS(testbed.Subject{Hosts: []string{"spiffe://foreign.example/ns/shop/sa/stranger"}})
	without := meshCaller(t, w, mesh, time.Hour)
	without.GetClientCertificate = nil
	return []badCaller{
		{"a wrong SNI", named(bridge.SNI("none.shop.svc.cluster.local"), "istio"), refusedByGateway, entry},
		{"the name of a cluster of the gateway", named("outbound|8080||"+bridge.Host, "istio"), refusedByGateway, entry},
		{"the name of the hub", named("isthmus-hub", "istio"), refusedByGateway, entry},
		{"no SNI", named("", "istio"), refusedByGateway, entry},
		{"TLS of another kind", named(bridge.SNI(bridge.Host), "http/1.1"), refusedByGateway, entry},
		{"plain text", nil, refusedByGateway, entry},
		{"no certificate", without, refusedBySidecar + "no_cert", behind},
		{"a foreign authority", meshClient(foreign), refusedBySidecar + "error", behind},
		{"a foreign trust domain", meshCaller(t, w, "spiffe://foreign.example/ns/shop/sa/stranger", time.Hour), refusedBySidecar + "san", behind},
		{"an expired certificate", meshCaller(t, w, mesh, -time.Minute), refusedBySidecar + "error", behind},
	}
}

// meshCaller has a certificate of an authority of the mesh, which ends so much later.
func meshCaller(t *testing.T, w *bridge.Topology, id string, ends time.Duration) *tls.Config {
	t.Helper()
	chain, key := w.Certificate(testbed.Subject{Hosts: []string{id}, NotAfter: time.Now().Add(ends)})
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		t.Fatal(err)
	}
	return meshClient(&tls.Config{Certificates: []tls.Certificate{pair}})
}

// meshClient speaks as sidecars do, to whomever, and shows its certificate whatever
// it is asked for.
func meshClient(c *tls.Config) *tls.Config {
	shown := c.Certificates[0]
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	c.Certificates = nil
	c.MinVersion, c.InsecureSkipVerify = tls.VersionTLS13, true
	c.ServerName, c.NextProtos = bridge.SNI(bridge.Host), []string{"istio"}
	return c
}

// call sends a request with a word in it to a gateway and returns what is answered.
func call(from *testbed.Namespace, g *bridge.Gateway, config *tls.Config, word string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := from.DialContext(ctx, "tcp", g.Entry())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if config != nil {
		conn = tls.Client(conn, config)
	}
	if _, err := fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", word, bridge.Host); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if len(answer) == 0 && err == nil {
		err = io.EOF
	}
	return string(answer), err
}
