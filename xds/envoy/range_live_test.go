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
	w := newFixture().attach("c1", "").
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

// CIDR blocks of TLS and HTTPS ports catch connections by the name of the server: they lead
// to the endpoints of the entry, or under NONE to where the caller dialed. Other names stay
// blocked under REGISTRY_ONLY.
func TestR25BlocksOfTLSPortsCatchConnections(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "live")
	outside(t, network, authority, "10.7.0.2", 9443)
	outside(t, network, authority, "10.7.0.3", 443)
	block := external(9443, federation.TLS, "10.7.0.2")
	block.Resolution, block.VIPs = federation.ClientSideLB, vips("198.51.100.0/25")
	none := external(443, federation.HTTPS)
	none.Resolution, none.VIPs = federation.Passthrough, vips("10.7.0.0/24")
	w := newFixture().attach("c1", "").
		say("c1", key("block.example.com"), block).
		say("c1", key("none.example.com"), none).
		config(t, "kind: MeshSettings\nspec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}")
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for _, c := range []struct{ url, server, want string }{
		{"https://198.51.100.7:9443/", "block.example.com", "10.7.0.2"},
		{"https://10.7.0.3/", "none.example.com", "10.7.0.3"},
	} {
		if name, err := secureGet(t, caller, authority, c.url, c.server); name != c.want {
			t.Errorf("%s of %s is answered by %q (%v), want %s", c.url, c.server, name, err, c.want)
		}
	}
	if name, err := secureGet(t, caller, authority, "https://198.51.100.200:9443/", "other.example.com"); err == nil {
		t.Errorf("what no entry names is answered by %q", name)
	}
}
