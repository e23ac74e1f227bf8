package envoy_test

import (
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// TestK52RealProxiesExposeHostsByPort as the Sidecar says: a host of one port is unknown at another. A listener
// with captureMode NONE is dialed at the loopback, and leads to its own hosts alone.
func TestK52RealProxiesExposeHostsByPort(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	w := newFixture().attach("c1", "")
	for i, name := range []string{"web", "log"} {
		address := []string{"10.7.0.2", "10.7.0.3"}[i]
		endpoint := at(address, 8080)
		endpoint.Ports = append(endpoint.Ports, federation.EndpointPort{Name: "http-b", Number: 8080})
		shard := web(endpoint)
		shard.Ports = append(shard.Ports, federation.Port{Name: "http-b", Number: 81, Protocol: federation.HTTP})
		shard.VIPs = vips([]string{"10.96.0.1/32", "10.96.0.2/32"}[i])
		w.say("c1", key(federation.Hostname(name+".shop.svc.cluster.local")), shard)
		ns, _ := pod(t, network, address, nil)
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: ns, HTTP: []int{8080}})
	}
	fixture := w.config(t, `kind: Sidecar
metadata: {name: client, namespace: shop}
spec:
  egress:
  - {port: {number: 80, protocol: HTTP}, hosts: ["./web.shop.svc.cluster.local"]}
  - {port: {number: 81, protocol: HTTP}, captureMode: NONE, hosts: ["./web.shop.svc.cluster.local"]}
  - {hosts: ["./log.shop.svc.cluster.local"]}
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}`).snapshot
	caller, _ := pod(t, network, "10.7.0.9", fixture)
	for host, want := range map[string]int{"web": 200, "log": 502} {
		if got := caller.Get("http://127.0.0.1:81/", "Host", host).Status; got != want {
			t.Errorf("at 127.0.0.1:81, %s is answered with %d, want %d", host, got, want)
		}
	}
	for url, want := range map[string]int{
		"http://10.96.0.1/": 200, "http://10.96.0.2/": 502, "http://10.96.0.1:81/": 502, "http://10.96.0.2:81/": 200,
	} {
		if got := caller.Get(url).Status; got != want {
			t.Errorf("%s is answered with %d, want %d", url, got, want)
		}
	}
}
