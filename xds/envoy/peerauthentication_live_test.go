package envoy_test

import (
	"fmt"
	"net/http"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// peerModes are of a namespace that takes mutual TLS alone, and of two workloads that do not.
const peerModes = `kind: PeerAuthentication
metadata: {name: mesh, namespace: istio-system}
spec: {mtls: {mode: DISABLE}}
---
kind: PeerAuthentication
metadata: {name: default, namespace: shop}
spec: {mtls: {mode: STRICT}}
---
kind: PeerAuthentication
metadata: {name: ports, namespace: shop}
spec:
  selector: {matchLabels: {app: mixed}}
  portLevelMtls: {8080: {mode: PERMISSIVE}, 9000: {mode: DISABLE}}
---
kind: PeerAuthentication
metadata: {name: open, namespace: shop}
spec:
  selector: {matchLabels: {app: open}}
  mtls: {mode: PERMISSIVE}
  portLevelMtls: {8080: {mode: STRICT}}`

// refusesRequests reports whether a request in plain text gets no answer.
func refusesRequests(t *testing.T, from *testbed.Namespace, address string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := from.Client(nil).Do(request)
	if err != nil {
		return true
	}
	response.Body.Close()
	return false
}

// TestK06RealProxiesRefusePlainText where their PeerAuthentication demands mutual TLS, and take
// it elsewhere; callers with a sidecar come through everywhere, with mutual TLS or without.
func TestK06RealProxiesRefusePlainText(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
	w := newFixture().attach("c1", "")
	for i, app := range []string{"strict", "mixed", "open"} {
		endpoint := at(fmt.Sprint("10.7.0.", i+2), 8080)
		endpoint.TLSMode, endpoint.ServiceAccount, endpoint.Labels = federation.MutualTLS, "shop/"+app, map[string]string{"app": app}
		endpoint.Ports = append(endpoint.Ports, federation.EndpointPort{Name: "tcp", Number: 9000})
		shard := web(endpoint)
		shard.Ports = append(shard.Ports, federation.Port{Name: "tcp", Number: 90, Protocol: federation.TCP})
		shard.VIPs = vips(fmt.Sprintf("10.96.0.%d/32", i+2))
		w.say("c1", federation.ServiceKey{Hostname: federation.Hostname(app + ".shop.svc.cluster.local"), Namespace: "shop"}, shard)
	}
	w.config(t, peerModes)
	for i, app := range []string{"strict", "mixed", "open"} {
		server, _ := proxied(t, network, authority, fmt.Sprint("10.7.0.", i+2), app, w.snapshot)
		testbed.StartEcho(t, testbed.EchoOptions{Name: app, Namespace: server, HTTP: []int{8080}, TCP: []int{9000, 9001}})
	}
	caller, _ := proxied(t, network, authority, "10.7.0.9", "caller", w.snapshot)
	plain, _ := pod(t, network, "10.7.0.30", nil)
	for i, want := range []struct {
		app              string
		http, tcp, other bool // refuses plain text
		mutual           bool // the caller's requests are mutual TLS
	}{{"strict", true, true, true, true}, {"mixed", false, false, true, true}, {"open", true, false, false, true}} {
		address := fmt.Sprint("10.7.0.", i+2)
		if got := refusesRequests(t, plain, address+":8080"); got != want.http {
			t.Errorf("%s refuses requests in plain text: %t, want %t", want.app, got, want.http)
		}
		if got := refusedLine(t, plain, address+":9000"); got != want.tcp {
			t.Errorf("%s refuses connections in plain text: %t, want %t", want.app, got, want.tcp)
		}
		if got := refusedLine(t, plain, address+":9001"); got != want.other {
			t.Errorf("%s refuses plain text on a port of no service: %t, want %t", want.app, got, want.other)
		}
		response := caller.Get(fmt.Sprintf("http://10.96.0.%d/", i+2))
		if response.Err != nil || response.Status != http.StatusOK {
			t.Errorf("%s answers a caller of the mesh with %d, %v", want.app, response.Status, response.Err)
			continue
		}
		if certified := response.Echo(t).Header.Get("X-Forwarded-Client-Cert") != ""; certified != want.mutual {
			t.Errorf("%s knows its caller of the mesh: %t, want %t", want.app, certified, want.mutual)
		}
		if got := sayLine(t, caller, fmt.Sprintf("10.96.0.%d:90", i+2)); got != want.app+" hello\n" {
			t.Errorf("the TCP service of %s answers %q to a caller of the mesh", want.app, got)
		}
	}
}
