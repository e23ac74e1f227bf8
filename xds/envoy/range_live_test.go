package envoy_test

import (
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// Addresses of a ServiceEntry catch its TCP connections whatever its resolution: CIDR
// blocks lead to its endpoints, and under REGISTRY_ONLY what an entry without
// endpoints names is allowed.
func TestR25AddressesCatchTCPConnections(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server, TCP: []int{5432, 5433, 5434}})
	entry := func(port uint16, resolution federation.Resolution, addresses ...string) *federation.Shard {
		s := external(port, federation.TCP)
		s.Resolution, s.VIPs = resolution, vips(addresses...)
		return s
	}
	block := entry(5432, federation.ClientSideLB, "198.51.100.0/25")
	block.Endpoints = external(5432, federation.TCP, "10.7.0.2").Endpoints
	w := newWorld().attach("c1", "").
		say("c1", key("block.example.com"), block).
		say("c1", key("none.example.com"), entry(5433, federation.Passthrough, "10.7.0.2/32")).
		say("c1", key("none-block.example.com"), entry(5434, federation.Passthrough, "10.7.0.0/24")).
		say("c1", key("http.example.com"), external(5432, federation.HTTP)).
		config(t, "kind: MeshSettings\nspec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}")
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for _, address := range []string{"198.51.100.7:5432", "10.7.0.2:5433", "10.7.0.2:5434"} {
		if got := sayLine(t, caller, address); got != "server hello\n" {
			t.Errorf("%s answers %q", address, got)
		}
	}
}
