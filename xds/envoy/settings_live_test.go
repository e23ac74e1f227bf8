package envoy_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const knownClient = headlessRoute + `
---
kind: AuthorizationPolicy
metadata: {name: clients, namespace: edge}
spec:
  action: ALLOW
  rules: [{from: [{source: {remoteIpBlocks: [203.0.113.7]}}]}]
`

// TestU70ClientsBehindALoadBalancer are known by what it says about them, if the gateway's settings have it trusted:
// by x-forwarded-for, or by the PROXY protocol.
func TestU70ClientsBehindALoadBalancer(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	backend, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: backend, HTTP: []int{8080}})
	s := newFixture().attach("c1", "").say("c1", webKey, web(at("10.7.0.2", 8080))).config(t, knownClient).snapshot
	caller, _ := pod(t, network, "10.7.0.9", nil)
	for address, topology := range map[string]map[string]any{
		"10.7.0.6": {}, "10.7.0.7": {"numTrustedProxies": 1}, "10.7.0.8": {"proxyProtocol": map[string]any{}},
	} {
		n := parse(t, "router~"+address+"~gw.edge~edge.svc.cluster.local", map[string]any{
			"CLUSTER_ID": "c1", "NAMESPACE": "edge", "LABELS": map[string]any{"istio": "ingress"}, "HTTP10": "1",
			"PROXY_CONFIG": map[string]any{"gatewayTopology": topology},
		})
		ns := testbed.NewNamespace(t, address)
		ns.Join(network, address)
		proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway-" + address, Config: sidecarConfig(t, n, s), Namespace: ns})
		proxy.WaitReady(time.Minute)
	}

	spoofed := []string{"Host", "www.example.com", "X-Forwarded-For", "203.0.113.7, 198.51.100.1"}
	said := []string{"Host", "www.example.com", "X-Forwarded-For", "198.51.100.1, 203.0.113.7"}
	if r := caller.Get("http://10.7.0.6/", said...); r.Status != http.StatusForbidden {
		t.Errorf("nobody is trusted: the gateway answers %d %v", r.Status, r.Err)
	}
	if r := caller.Get("http://10.7.0.7/", spoofed...); r.Status != http.StatusForbidden {
		t.Errorf("one proxy is trusted, and what its caller said counts: %d %v", r.Status, r.Err)
	}
	r := caller.Get("http://10.7.0.7/", said...)
	if r.Status != http.StatusOK {
		t.Fatalf("one proxy is trusted: the gateway answers %d %v %s", r.Status, r.Err, r.Body)
	}
	if client := r.Echo(t).Header.Get("X-Envoy-External-Address"); client != "203.0.113.7" {
		t.Errorf("the workload gets the client %q", client)
	}

	for header, want := range map[string]int{
		"PROXY TCP4 203.0.113.7 10.7.0.8 4711 80\r\n":  http.StatusOK,
		"PROXY TCP4 198.51.100.1 10.7.0.8 4711 80\r\n": http.StatusForbidden,
		binaryHeader("203.0.113.7"):                    http.StatusOK,
		binaryHeader("198.51.100.1"):                   http.StatusForbidden,
	} {
		conn, err := caller.DialContext(context.Background(), "tcp", "10.7.0.8:80")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "%sGET / HTTP/1.0\r\nHost: www.example.com\r\n\r\n", header); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", header, err)
		}
		if answer.StatusCode != want {
			t.Errorf("%q: the gateway answers %d, want %d", header, answer.StatusCode, want)
		}
		_ = answer.Body.Close()
		_ = conn.Close()
	}
}

// binaryHeader is a header of version 2 of the PROXY protocol for a connection of the client.
func binaryHeader(client string) string {
	from, to := netip.MustParseAddr(client).As4(), netip.MustParseAddr("10.7.0.8").As4()
	return fmt.Sprintf("%s\x21\x11\x00\x0c%s%s\x12\x67\x00\x50", signature, from[:], to[:])
}
