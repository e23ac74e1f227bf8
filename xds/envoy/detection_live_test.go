package envoy_test

import (
	"net/http"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// detectionRules are of requests to a port of which nothing says that it speaks HTTP.
const detectionRules = `kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - match: [{uri: {prefix: /teapot}}]
    directResponse: {status: 418}
  - headers: {request: {set: {x-routed: "yes"}}}
    route: [{destination: {host: web.shop.svc.cluster.local}}]
---
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  action: DENY
  rules: [{to: [{operation: {paths: [/admin], ports: ["8080"]}}]}]`

// undeclaredWeb has a port that speaks HTTP and one that does not, and nothing says so.
func undeclaredWeb() *federation.Shard {
	endpoint := at("10.7.0.2", 8080)
	endpoint.TLSMode, endpoint.ServiceAccount, endpoint.Labels = federation.MutualTLS, "shop/web", map[string]string{"app": "web"}
	endpoint.Ports = append(endpoint.Ports, federation.EndpointPort{Name: "raw", Number: 9000})
	shard := web(endpoint)
	shard.Ports = []federation.Port{
		{Name: "http", Number: 80, Protocol: federation.TCP, Undeclared: true},
		{Name: "raw", Number: 90, Protocol: federation.TCP, Undeclared: true},
	}
	shard.VIPs = vips("10.96.0.1/32")
	return shard
}

// versionTwo speaks HTTP/2 without TLS.
func versionTwo(from *testbed.Namespace) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{DialContext: from.DialContext, Protocols: protocols}}
}

// TestK40RealProxiesDetectProtocols of ports that declare none: routes and policies apply to
// requests, in each version of HTTP, and other connections pass, with mutual TLS and without.
func TestK40RealProxiesDetectProtocols(t *testing.T) {
	for mode, plainText := range map[string]bool{"PERMISSIVE": true, "STRICT": false} {
		t.Run(mode, func(t *testing.T) {
			network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
			w := newFixture().attach("c1", "").say("c1", webKey, undeclaredWeb()).config(t, detectionRules+
				"\n---\nkind: PeerAuthentication\nmetadata: {name: default, namespace: shop}\nspec: {mtls: {mode: "+mode+"}}")
			server, sidecar := proxied(t, network, authority, "10.7.0.2", "web", w.snapshot)
			testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}, TCP: []int{9000}})
			caller, _ := proxied(t, network, authority, "10.7.0.9", "caller", w.snapshot)
			plain, _ := pod(t, network, "10.7.0.30", nil)

			response := caller.Get("http://10.96.0.1/")
			if response.Err != nil || response.Status != http.StatusOK {
				t.Fatalf("a request is answered with %d, %v", response.Status, response.Err)
			}
			header := response.Echo(t).Header
			if header.Get("X-Routed") != "yes" || !strings.Contains(header.Get("X-Forwarded-Client-Cert"), "sa/caller") {
				t.Errorf("the request is not routed as HTTP in mutual TLS: %v", header)
			}
			answer, err := versionTwo(caller).Get("http://10.96.0.1/")
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("a request in HTTP/2 without TLS: %v, %v", answer, err)
			}
			for path, want := range map[string]int{"/teapot": 418, "/admin": 403} {
				if got := statusOf(t, caller, http.MethodGet, "http://10.96.0.1"+path); got != want {
					t.Errorf("%s is answered with %d, want %d", path, got, want)
				}
			}
			before := sidecar.Stat("listener.0.0.0.0_15006.ssl.handshake")
			if got := sayLine(t, caller, "10.96.0.1:90"); got != "web hello\n" {
				t.Errorf("a connection without HTTP is answered %q", got)
			}
			if after := sidecar.Stat("listener.0.0.0.0_15006.ssl.handshake"); after == before {
				t.Error("the connection without HTTP is not mutual TLS")
			}
			if got := refusedLine(t, plain, "10.7.0.2:9000"); got == plainText {
				t.Errorf("plain text is refused: %t", got)
			}
			if !plainText {
				if !refusesRequests(t, plain, "10.7.0.2:8080") {
					t.Error("a request in plain text is served")
				}
				return
			}
			for path, want := range map[string]int{"/": 200, "/admin": 403} {
				if got := statusOf(t, plain, http.MethodGet, "http://10.7.0.2:8080"+path); got != want {
					t.Errorf("%s in plain text is answered with %d, want %d", path, got, want)
				}
			}
		})
	}
}
