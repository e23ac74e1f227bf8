package envoy_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

const grpcWebRules = `kind: Gateway
metadata: {name: front, namespace: edge}
spec:
  selector: {istio: ingress}
  servers:
  - {port: {number: 80, name: web, protocol: GRPC-WEB}, hosts: ["*"]}
  - {port: {number: 81, name: http, protocol: HTTP}, hosts: ["*"]}
---
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [www.example.com]
  gateways: [edge/front]
  http: [{route: [{destination: {host: plain.shop}}]}]
`

// TestG122RealProxiesTranslateGRPCWeb: a browser's call reaches a real gRPC server through a gateway and from a sidecar, and the status of
// the call comes back in the body. Where nothing says gRPC-Web, the server gets the call as it is and refuses it.
func TestG122RealProxiesTranslateGRPCWeb(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	w := newFixture().attach("c1", "").config(t, grpcWebRules)
	for host, p := range map[federation.Hostname]struct {
		protocol federation.Protocol
		number   uint16
		vip      string
	}{"web.shop": {federation.GRPCWeb, 80, "10.96.0.1/32"}, "plain.shop": {federation.GRPC, 81, "10.96.0.2/32"}} {
		w.say("c1", key(host), &federation.Shard{
			Ports: []federation.Port{{Name: "http", Number: p.number, Protocol: p.protocol}}, VIPs: vips(p.vip),
			Endpoints: []federation.Endpoint{at("10.7.0.2", 8080)},
		})
	}
	ns, _ := pod(t, network, "10.7.0.2", nil)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	l := listenIn(t, ns, "0.0.0.0:8080")
	go server.Serve(l)
	t.Cleanup(server.Stop)
	startGateway(t, network, "10.7.0.8", w.snapshot)
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	stranger, _ := pod(t, network, "10.7.0.10", nil)

	for name, c := range map[string]struct {
		from       *testbed.Namespace
		to, host   string
		translated bool
	}{
		"through the gateway":                {stranger, "10.7.0.8:80", "www.example.com", true},
		"through a port for HTTP":            {stranger, "10.7.0.8:81", "www.example.com", false},
		"from a sidecar":                     {caller, "10.96.0.1", "web.shop", true},
		"from a sidecar, to a port for gRPC": {caller, "10.96.0.2:81", "plain.shop", false},
	} {
		status, kind, body := callWeb(t, c.from.Client(nil), "http://"+c.to+"/grpc.health.v1.Health/Check", c.host)
		serving, ended, _ := bytes.Cut(body, []byte{0x80})
		answered := bytes.Equal(serving, []byte{0, 0, 0, 0, 2, 8, 1}) && strings.Contains(strings.ReplaceAll(string(ended), " ", ""), "grpc-status:0")
		if (answered && kind == "application/grpc-web+proto") != c.translated {
			t.Errorf("%s: the call ends with %d %q %q", name, status, kind, body)
		}
	}
}

// callWeb asks for the health of the server, as a browser does.
func callWeb(t *testing.T, c *http.Client, url, host string) (status int, kind string, body []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(make([]byte, 5))) // a message without fields
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/grpc-web+proto")
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Content-Type"), body
}
