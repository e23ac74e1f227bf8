package envoy_test

import (
	"bufio"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// ingressOf has the workload web reached at other ports than its own, the same for a proxy
// with redirection and one without.
const ingressOf = `kind: Sidecar
metadata: {name: web, namespace: shop}
spec:
  ingress:
  - {port: {number: 80, protocol: HTTP}, defaultEndpoint: "127.0.0.1:8080"}
  - {port: {number: 81, protocol: TCP}, defaultEndpoint: "0.0.0.0:9000", connectionPool: {tcp: {maxConnections: 1}}}
  - {port: {number: 82, protocol: HTTP}, defaultEndpoint: "unix:///tmp/isthmus-none.sock"}
  - {port: {number: 443, protocol: HTTPS}, defaultEndpoint: "127.0.0.1:8080", tls: {mode: SIMPLE, serverCertificate: /web.crt, privateKey: /web.key}}
---
kind: PeerAuthentication
metadata: {name: web, namespace: shop}
spec: {mtls: {mode: DISABLE}}`

// reached starts a workload that listens at its loopback alone, beside a proxy of that mode.
func reached(t *testing.T, network *testbed.Network, authority *testbed.Authority, address, mode string, s *federation.Snapshot) {
	t.Helper()
	ns := testbed.NewNamespace(t, mode)
	ns.Join(network, address)
	n := parse(t, "sidecar~"+address+"~web.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "INTERCEPTION_MODE": mode})
	chain, key := authority.Issue(testbed.Subject{Hosts: []string{"web.example.com"}})
	config := withNamedSecrets(t, sidecarConfig(t, n, s),
		map[string]transport.KeyMaterial{"file-cert:/web.crt~/web.key": {Chain: chain, Key: key}})
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "sidecar-" + address, Config: config, Namespace: ns})
	proxy.WaitReady(time.Minute)
	if mode == "REDIRECT" {
		ns.Capture(testbed.ProxyUID)
	}
	testbed.StartEcho(t, testbed.EchoOptions{Name: mode, Namespace: ns, Address: netip.MustParseAddr("127.0.0.1"), HTTP: []int{8080}})
	testbed.StartEcho(t, testbed.EchoOptions{Name: mode, Namespace: ns, Address: netip.MustParseAddr(address), TCP: []int{9000}})
}

// TestK51RealProxiesReachTheWorkloadWhereASidecarSays, by the loopback and by its own address, within its limits and over
// TLS, with redirection and without.
func TestK51RealProxiesReachTheWorkloadWhereASidecarSays(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "outside")
	fixture := newFixture().attach("c1", "").config(t, ingressOf).snapshot
	caller, _ := pod(t, network, "10.7.0.9", nil)
	for address, mode := range map[string]string{"10.7.0.2": "REDIRECT", "10.7.0.3": "NONE"} {
		reached(t, network, authority, address, mode, fixture)
		if got := caller.Get("http://" + address + "/").Echo(t).Name; got != mode {
			t.Errorf("%s: port 80 is answered by %q", mode, got)
		}
		if got := caller.Get("http://" + address + ":82/").Status; got != 503 {
			t.Errorf("%s: a port whose socket does not exist is answered with %d", mode, got)
		}
		if got, err := secureGet(t, caller, authority, "https://"+address+"/", "web.example.com"); got != mode {
			t.Errorf("%s: over TLS %q answers, %v", mode, got, err)
		}
		if !refusesRequests(t, caller, address+":443") {
			t.Errorf("%s: the port that demands TLS answers a request in plain text", mode)
		}
		heldConnection(t, caller, address+":81")
		if !refusedLine(t, caller, address+":81") {
			t.Errorf("%s: a second connection is let through to the workload, which takes one", mode)
		}
	}
}

// heldConnection stays open until the test ends. The server has answered it.
func heldConnection(t *testing.T, from *testbed.Namespace, address string) {
	t.Helper()
	conn, err := from.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "hello")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatalf("%s: %q, %v", address, line, err)
	}
}
