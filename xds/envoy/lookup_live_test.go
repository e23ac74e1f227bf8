package envoy_test

import (
	"net/netip"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// TestG125RealProxyWithIPv6AloneReachesNames that also have IPv4 addresses: those of a service, and those for which its
// workload asks.
func TestG125RealProxyWithIPv6AloneReachesNames(t *testing.T) {
	network := testbed.NewNetwork(t, "v6", "fd07::/64")
	server, caller := testbed.NewNamespace(t, "server"), testbed.NewNamespace(t, "caller")
	server.Join(network, "fd07::3")
	caller.Join(network, "fd07::9")
	caller.Exec("ip", "-6", "route", "replace", "default", "via", network.Gateway().String())
	testbed.StartEcho(t, testbed.EchoOptions{Name: "plain", Namespace: server, Address: netip.IPv6Unspecified(), HTTP: []int{80}})
	const addresses = "10.7.0.3,fd07::3"
	startNames(t, server, "[fd07::3]:53", map[string]string{"backend.example.org": addresses, "a.example.com": addresses})

	backend := httpOn(80, "fd96::1/128")
	backend.Endpoints, backend.Resolution = []federation.Endpoint{at("backend.example.org", 80)}, federation.DNSLB
	backend.Endpoints[0].Ports[0].Name = "p"
	snapshot := newFixture().attach("c1", "").resolveNames(t, dynamicEntry(80, federation.HTTP)).
		say("c1", key("backend.shop"), backend).snapshot
	n := parse(t, "sidecar~fd07::9~pod.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1"})
	config := askAt(sidecarConfig(t, n, snapshot), "fd07::3")
	testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "caller", Config: config, Namespace: caller}).WaitReady(time.Minute)
	captureIPv6(caller)
	for _, host := range []string{"backend.shop", "a.example.com"} {
		answersOf(t, caller, "http://[fd96::1]/", map[string]int{host: 200})
	}
}
