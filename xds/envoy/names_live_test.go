package envoy_test

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// A DestinationRule that originates TLS verifies the subjectAltNames of the
// ServiceEntry, and without any of them the hostname, on HTTP and on TCP ports.
func TestR26NamesOfServiceEntriesAreVerified(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "live")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{
		Name: "server", Namespace: server, HTTP: []int{8443},
		TLS: authority.TLS(testbed.Subject{Name: "server", Hosts: []string{"server.example.com"}}),
	})
	cases := []struct {
		host     string
		names    []string
		protocol federation.Protocol
		reached  bool
	}{
		{"entry.example.com", []string{"server.example.com"}, federation.HTTP, true},
		{"server.example.com", []string{"other.example.com"}, federation.HTTP, false},
		{"tcp.example.com", []string{"server.example.com"}, federation.TCP, true},
		{"wrong-tcp.example.com", []string{"other.example.com"}, federation.TCP, false},
		{"unnamed-tcp.example.com", nil, federation.TCP, false},
	}
	w, dir := newFixture().attach("c1", ""), liveFiles(t, authority)
	for i, c := range cases {
		entry := external(80, c.protocol, "10.7.0.2")
		entry.Endpoints[0].Ports[0].Number = 8443
		entry.ServiceAccounts, entry.VIPs = c.names, vips(fmt.Sprintf("10.96.0.%d/32", i+1))
		w.say("c1", key(federation.Hostname(c.host)), entry).config(t, fmt.Sprintf(`kind: DestinationRule
metadata: {name: rule-%d, namespace: shop}
spec: {host: %s, trafficPolicy: {tls: {mode: SIMPLE, caCertificates: %s/ca.pem}}}`, i, c.host, dir))
	}
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for i, c := range cases {
		r := caller.Get(fmt.Sprintf("http://10.96.0.%d/", i+1), "Host", c.host)
		if reached := r.Err == nil && r.Status == 200; reached != c.reached {
			t.Errorf("%s with %q: answered with %d %v", c.host, c.names, r.Status, r.Err)
		}
	}
}
