package envoy_test

import (
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// TestG108OriginalDestinationsAtTheirTargetPort has a captured workload call addresses of ServiceEntries with the resolution NONE:
// requests and connections go to the address that it dialed, at the target port of the entry. Without one, they go to the port that it dialed.
func TestG108OriginalDestinationsAtTheirTargetPort(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	far, _ := pod(t, network, "10.7.0.4", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "target", Namespace: far, TCP: []int{15432}, HTTP: []int{8080}})
	testbed.StartEcho(t, testbed.EchoOptions{Name: "dialed", Namespace: far, TCP: []int{5432, 5433}, HTTP: []int{80, 81}})
	to := func(port, target uint16, protocol federation.Protocol, vip ...string) *federation.Shard {
		s := external(port, protocol)
		s.Resolution, s.Ports[0].Target, s.VIPs = federation.Passthrough, target, vips(vip...)
		return s
	}
	w := newFixture().attach("c1", "").entries(
		[]federation.Hostname{"db.example.com", "same.example.com", "web.example.com", "plain.example.com"},
		to(5432, 15432, federation.TCP, "10.7.0.0/24"), to(5433, 0, federation.TCP, "10.7.0.0/24"),
		to(80, 8080, federation.HTTP), to(81, 0, federation.HTTP),
	)
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for address, want := range map[string]string{"10.7.0.4:5432": "target hello\n", "10.7.0.4:5433": "dialed hello\n"} {
		if got := sayLine(t, caller, address); got != want {
			t.Errorf("%s answers %q, want %q", address, got, want)
		}
	}
	for _, c := range []struct{ url, host, want string }{
		{"http://10.7.0.4/", "web.example.com", "target"},
		{"http://10.7.0.4/", "other.example.com", "dialed"},
		{"http://10.7.0.4:81/", "plain.example.com", "dialed"},
	} {
		if r := caller.Get(c.url, "Host", c.host); r.Err != nil || r.Status != 200 || r.Echo(t).Name != c.want {
			t.Errorf("a request for %s at %s: answered with %d %q %v, want %s", c.host, c.url, r.Status, r.Body, r.Err, c.want)
		}
	}
}
