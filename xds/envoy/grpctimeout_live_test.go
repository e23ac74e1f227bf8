package envoy_test

import (
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

const deadlineRules = `kind: VirtualService
metadata: {name: limited, namespace: shop}
spec: {hosts: [limited.shop], http: [{timeout: 0.2s, route: [{destination: {host: limited.shop}}]}]}
---
kind: VirtualService
metadata: {name: long, namespace: shop}
spec: {hosts: [long.shop], http: [{timeout: 3600s, route: [{destination: {host: long.shop}}]}]}
---
kind: VirtualService
metadata: {name: routed, namespace: shop}
spec: {hosts: [routed.shop], http: [{route: [{destination: {host: routed.shop}}]}]}`

// TestG109CallsEndAfterTheirOwnTime: real sidecars end a gRPC call after the time that its caller has for it, and before that after the
// time limit of the route, on the side of the caller and on that of the server.
func TestG109CallsEndAfterTheirOwnTime(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	w := newFixture().attach("c1", "").config(t, deadlineRules)
	for host, vip := range map[federation.Hostname]string{"plain.shop": "10.96.0.1/32", "limited.shop": "10.96.0.2/32", "routed.shop": "10.96.0.3/32", "long.shop": "10.96.0.4/32"} {
		shard := web(at("10.7.0.2", 8080))
		shard.VIPs = vips(vip)
		w.say("c1", key(host), shard)
	}
	w.say("c1", key("inbound.shop"), web(at("10.7.0.3", 8080)))
	bare, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "bare", Namespace: bare, HTTP: []int{8080}})
	server, _ := pod(t, network, "10.7.0.3", w.snapshot)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server, HTTP: []int{8080}})
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	stranger, _ := pod(t, network, "10.7.0.8", nil)

	for name, c := range map[string]struct {
		from            *testbed.Namespace
		url, time, want string
	}{
		"without a rule":      {caller, "http://10.96.0.1/?delay=1h", "200m", "4"}, // DEADLINE_EXCEEDED
		"a rule without one":  {caller, "http://10.96.0.3/?delay=1h", "200m", "4"},
		"that of the route":   {caller, "http://10.96.0.2/?delay=1h", "1H", "14"}, // UNAVAILABLE
		"less than the route": {caller, "http://10.96.0.4/?delay=1h", "200m", "14"},
		"at the server":       {stranger, "http://10.7.0.3:8080/?delay=1h", "200m", "4"},
	} {
		r := c.from.Get(c.url, "Content-Type", "application/grpc", "Grpc-Timeout", c.time)
		if got := r.Header.Get("Grpc-Status"); r.Err != nil || got != c.want {
			t.Errorf("%s: the call ends with the status %q (%q, %v), want %s", name, got, r.Header.Get("Grpc-Message"), r.Err, c.want)
		}
	}
	if r := caller.Get("http://10.96.0.1/?delay=500ms", "Content-Type", "application/grpc"); r.Err != nil || r.Status != 200 {
		t.Errorf("a call without the header ends with %d %v", r.Status, r.Err)
	}
}
