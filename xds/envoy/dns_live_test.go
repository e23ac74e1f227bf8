package envoy_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// namesFixture has a service of the caller's cluster, and one of another cluster
// that has the same VIP there.
func namesFixture() *federation.Snapshot {
	far := tcp(90, federation.TCP, "10.96.0.1/32")
	far.Endpoints = []federation.Endpoint{{
		Address: federation.IPAddress(netip.MustParseAddr("10.7.0.2")),
		Ports:   []federation.EndpointPort{{Name: "p", Number: 9000}},
	}}
	near := tcp(90, federation.TCP, "10.96.0.1/32")
	near.Endpoints = []federation.Endpoint{{
		Address: federation.IPAddress(netip.MustParseAddr("10.7.0.3")),
		Ports:   []federation.EndpointPort{{Name: "p", Number: 9000}},
	}}
	return newFixture().attach("c1", "").attach("c2", "").say("c1", key("near.shop.svc.cluster.local"), near).say("c2",
		key("far.shop.svc.cluster.local"), far).snapshot
}

// lookup asks a DNS server that does not exist for a name, as a workload would.
func lookup(from *testbed.Namespace, network, name string) ([]netip.Addr, error) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return from.DialContext(ctx, network, "10.7.0.53:53")
	}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return resolver.LookupNetIP(ctx, network, name)
}

// A host that only another cluster has resolves, and leads there, though its VIP
// is taken here; a host of the own cluster has the own cluster's VIP.
func TestHostsOfOtherClustersResolve(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	for address, name := range map[string]string{"10.7.0.2": "far", "10.7.0.3": "near"} {
		ns, _ := pod(t, network, address, nil)
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: ns, TCP: []int{9000}})
	}
	caller := testbed.NewNamespace(t, "caller")
	caller.Join(network, "10.7.0.9")
	n := parse(t, "sidecar~10.7.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "DNS_CAPTURE": true})
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "caller", Config: sidecarConfig(t, n, namesFixture()), Namespace: caller})
	proxy.WaitReady(time.Minute)
	caller.Capture(testbed.ProxyUID)
	caller.CaptureDNS(testbed.ProxyUID)

	automatic := key("far.shop.svc.cluster.local").AutomaticVIPs()[0]
	for name, want := range map[string]struct {
		vip  netip.Addr
		says string
	}{
		"near.shop.svc.cluster.local.": {netip.MustParseAddr("10.96.0.1"), "near hello\n"},
		"far.shop.svc.cluster.local.":  {automatic, "far hello\n"},
	} {
		found, err := lookup(caller, "ip4", name)
		if err != nil || !slices.Equal(found, []netip.Addr{want.vip}) {
			t.Errorf("%s resolves to %v, %v, want %s", name, found, err, want.vip)
			continue
		}
		if got := sayLine(t, caller, netip.AddrPortFrom(found[0], 90).String()); got != want.says {
			t.Errorf("%s answers %q, want %q", name, got, want.says)
		}
	}
	if n := proxy.Stat("dns_filter.dns.local_a_record_answers"); n < 2 { // a request that is late is repeated
		t.Errorf("%d requests were answered from the table, want one for each of 2 names", n)
	}
}
