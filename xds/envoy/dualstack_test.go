package envoy_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// captureIPv6 is what Namespace.Capture does, for IPv6. The sidecar's own
// address towards its workload must be one of the pod.
func captureIPv6(ns *testbed.Namespace) {
	ns.AddLocal("::6")
	owner := fmt.Sprint("-m owner --uid-owner ", testbed.ProxyUID)
	for _, rule := range []string{
		"-A PREROUTING -p tcp -j REDIRECT --to-ports 15006",
		"-A OUTPUT -o lo -s ::6/128 -j RETURN",
		"-A OUTPUT -p tcp ! -d ::1/128 -o lo " + owner + " -j REDIRECT --to-ports 15006",
		"-A OUTPUT " + owner + " -j RETURN",
		"-A OUTPUT -d ::1/128 -j RETURN",
		"-A OUTPUT -p tcp -j REDIRECT --to-ports 15001",
	} {
		ns.Exec(append([]string{"ip6tables", "-t", "nat"}, strings.Fields(rule)...)...)
	}
}

// dualPods are the two networks of pods that have an address of each family.
type dualPods struct{ v4, v6 *testbed.Network }

// start makes the pod that ends with the number, with a sidecar where there is
// something to tell it.
func (p dualPods) start(t *testing.T, number int, s *federation.Snapshot) *testbed.Namespace {
	t.Helper()
	v4, v6 := fmt.Sprint("10.7.0.", number), fmt.Sprint("fd07::", number)
	ns := testbed.NewNamespace(t, v4)
	ns.Join(p.v4, v4)
	ns.Join(p.v6, v6)
	ns.Exec("ip", "-6", "route", "add", "default", "via", p.v6.Gateway().String())
	if s == nil {
		return ns
	}
	n := parse(t, "sidecar~"+v4+"~pod.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "INSTANCE_IPS": v4 + "," + v6})
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "sidecar-" + v4, Config: sidecarConfig(t, n, s), Namespace: ns})
	proxy.WaitReady(time.Minute)
	ns.Capture(testbed.ProxyUID)
	captureIPv6(ns)
	return ns
}

// Both families are caught on the way out and on the way in, by VIP and
// directly.
func TestDualStackTrafficIsCaptured(t *testing.T) {
	pods := dualPods{testbed.NewNetwork(t, "v4", "10.7.0.0/24"), testbed.NewNetwork(t, "v6", "fd07::/64")}
	for family, endpoint := range map[string]string{"IPv4": "10.7.0.2", "IPv6": "fd07::2"} {
		t.Run(family, func(t *testing.T) {
			shop, raw := web(at(endpoint, 8080)), tcp(90, federation.TCP, "10.96.0.2/32", "fd96::2/128")
			shop.VIPs = vips("10.96.0.1/32", "fd96::1/128")
			raw.Endpoints = []federation.Endpoint{at(endpoint, 9000)}
			raw.Endpoints[0].Ports[0].Name = "p"
			fixture := newFixture().attach("c1", "").say("c1", webKey, shop).say("c1", key("raw.shop"), raw).snapshot
			server, caller := pods.start(t, 2, fixture), pods.start(t, 9, fixture)
			testbed.StartEcho(t, testbed.EchoOptions{
				Name: "server", Namespace: server, Address: netip.IPv6Unspecified(),
				HTTP: []int{8080, 7777}, TCP: []int{9000},
			})
			for _, url := range []string{"http://10.96.0.1/", "http://[fd96::1]/"} {
				answer := caller.Get(url).Echo(t)
				if remote := netip.MustParseAddrPort(answer.Remote).Addr().Unmap(); remote != sidecarAddress(endpoint) {
					t.Errorf("%s: the workload is spoken to by %s, not by its sidecar", url, remote)
				}
			}
			for _, address := range []string{"10.96.0.2:90", "[fd96::2]:90"} {
				if got := sayLine(t, caller, address); got != "server hello\n" {
					t.Errorf("%s answers %q", address, got)
				}
			}
			for _, url := range []string{"http://10.7.0.2:7777/", "http://[fd07::2]:7777/"} {
				if answer := caller.Get(url).Echo(t); answer.Name != "server" {
					t.Errorf("%s is answered by %q", url, answer.Name)
				}
			}
		})
	}
}

// sidecarAddress is the address from which a sidecar speaks to its workload.
func sidecarAddress(endpoint string) netip.Addr {
	if netip.MustParseAddr(endpoint).Is6() {
		return netip.MustParseAddr("::6")
	}
	return netip.MustParseAddr("127.0.0.6")
}
