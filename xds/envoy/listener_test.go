package envoy_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

func vips(all ...string) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, s := range all {
		prefixes = append(prefixes, netip.MustParsePrefix(s))
	}
	return prefixes
}

func tcp(number uint16, protocol federation.Protocol, addresses ...string) *federation.Shard {
	return &federation.Shard{Ports: []federation.Port{{Name: "p", Number: number, Protocol: protocol}}, VIPs: vips(addresses...)}
}

func key(host federation.Hostname) federation.ServiceKey {
	return federation.ServiceKey{Hostname: host, Namespace: "shop"}
}

// leadsTo returns the cluster or the route configuration of the listener's only
// filter.
func leadsTo(t *testing.T, s *federation.Snapshot, n envoy.Node, listener string) string {
	t.Helper()
	l, _ := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, n, s), listener)
	clusters, routes := listenerRefersTo(t, l)
	return strings.Join(append(clusters, routes...), " ")
}

func expectListeners(t *testing.T, s *federation.Snapshot, n envoy.Node, want ...string) {
	t.Helper()
	want = append(want, "virtualInbound", "virtualOutbound")
	if got := namesOf(build(t, envoy.ListenerType, n, s)); !slices.Equal(got, want) {
		t.Errorf("listeners are %q, want %q", got, want)
	}
}

func TestListenersByProtocolAndVIP(t *testing.T) {
	n := client(t)
	dual := parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "INSTANCE_IPS": "10.0.0.9,fd00::9"})
	for name, c := range map[string]struct {
		shard *federation.Shard
		node  envoy.Node
		want  []string
	}{
		"HTTP by port":                {tcp(80, federation.HTTP, "10.1.0.1/32"), n, []string{"0.0.0.0_80"}},
		"HTTPS by VIP":                {tcp(443, federation.HTTPS, "10.1.0.1/32"), n, []string{"10.1.0.1_443"}},
		"unknown protocol is TCP":     {tcp(99, federation.Unsupported, "10.1.0.1/32"), n, []string{"10.1.0.1_99"}},
		"UDP has none":                {tcp(53, federation.UDP, "10.1.0.1/32"), n, nil},
		"TCP without VIP passes":      {tcp(99, federation.TCP), n, nil},
		"a range by port":             {tcp(99, federation.TCP, "10.2.0.0/24"), n, []string{"0.0.0.0_99"}},
		"IPv6 only to who has it":     {tcp(99, federation.TCP, "10.1.0.1/32", "fd00::1/128"), n, []string{"10.1.0.1_99"}},
		"IPv6":                        {tcp(99, federation.TCP, "10.1.0.1/32", "fd00::1/128"), dual, []string{"10.1.0.1_99", "fd00::1_99"}},
		"a port of the capture":       {tcp(15001, federation.HTTP, "10.1.0.1/32"), n, nil},
		"the other port of it":        {tcp(15006, federation.GRPC, "10.1.0.1/32"), n, nil},
		"a VIP's port of the capture": {tcp(15006, federation.TCP, "10.1.0.1/32"), n, []string{"10.1.0.1_15006"}},
	} {
		t.Run(name, func(t *testing.T) {
			expectListeners(t, newFixture().attach("c1", "").say("c1", webKey, c.shard).snapshot, c.node, c.want...)
		})
	}
}

func TestHeadlessTCPPassesToWhereTheCallerWanted(t *testing.T) {
	shard := tcp(99, federation.TCP, "10.1.0.1/32")
	shard.Resolution = federation.Passthrough
	expectListeners(t, newFixture().attach("c1", "").say("c1", webKey, shard).snapshot, client(t))
}

func TestForeignVIPsServeWhereTheClusterLacksTheService(t *testing.T) {
	w := newFixture().attach("c1", "").attach("c2", "").
		say("c2", key("far.shop"), tcp(99, federation.TCP, "10.1.0.1/32")).
		say("c1", key("both.shop"), tcp(99, federation.TCP, "10.1.0.2/32")).
		say("c2", key("both.shop"), tcp(99, federation.TCP, "10.2.0.2/32"))
	expectListeners(t, w.snapshot, client(t), "10.1.0.1_99", "10.1.0.2_99")

	w.say("c1", key("near.shop"), tcp(99, federation.TCP, "10.1.0.1/32"))
	if got := leadsTo(t, w.snapshot, client(t), "10.1.0.1_99"); got != "outbound|99||near.shop" {
		t.Errorf("the VIP of both a local and a foreign service leads to %s", got)
	}
	_, reasons := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, client(t), w.snapshot), "10.1.0.1_99")
	if len(reasons) != 1 || reasons[0].Code != resource.ReasonVIPTaken || !strings.Contains(reasons[0].Message, "far.shop") {
		t.Errorf("the loser is not named: %v", reasons)
	}
}

func TestTCPBesideHTTPOnOnePortKeepsItsVIP(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", key("web.shop"), tcp(80, federation.HTTP, "10.1.0.1/32")).
		say("c1", key("raw.shop"), tcp(80, federation.TCP, "10.1.0.2/32"))
	expectListeners(t, w.snapshot, client(t), "0.0.0.0_80", "10.1.0.2_80")
	if got := leadsTo(t, w.snapshot, client(t), "10.1.0.2_80"); got != "outbound|80||raw.shop" {
		t.Errorf("the TCP service's VIP leads to %s", got)
	}
}

// sameHostname has two services of one hostname; only the first can have clusters.
func sameHostname(first, second *federation.Shard) *fixture {
	return newFixture().attach("c1", "").
		say("c1", federation.ServiceKey{Hostname: "db.example", Namespace: "a"}, first).
		say("c1", federation.ServiceKey{Hostname: "db.example", Namespace: "b"}, second)
}

func TestAVIPDoesNotLeadToAnotherServiceOfTheSameHostname(t *testing.T) {
	private := func(s *federation.Shard) *federation.Shard { s.ExportTo = []string{"shop"}; return s }
	first, second := tcp(99, federation.TCP, "10.1.0.1/32"), tcp(99, federation.TCP, "10.1.0.2/32")
	w := sameHostname(first, second)
	expectListeners(t, w.snapshot, client(t), "10.1.0.1_99")
	w = sameHostname(private(tcp(99, federation.TCP, "10.1.0.1/32")), second)
	expectListeners(t, w.snapshot, client(t), "10.1.0.1_99", "10.1.0.2_99")
	if got := leadsTo(t, w.snapshot, client(t), "10.1.0.2_99"); got != "PassthroughCluster" {
		t.Errorf("the VIP of a service whose hostname is another's leads to %s", got)
	}
	w = sameHostname(private(tcp(99, federation.TCP, "10.1.0.1/32")), private(tcp(99, federation.TCP, "10.1.0.2/32")))
	expectListeners(t, w.snapshot, client(t), "10.1.0.1_99")
}

func TestHTTPDoesNotLeadToATCPServiceOfTheSameHostname(t *testing.T) {
	w := sameHostname(tcp(80, federation.TCP, "10.1.0.1/32"), tcp(80, federation.HTTP, "10.1.0.2/32")).say("c1", webKey, web())
	if got := domainsOf(t, w.snapshot, client(t), "80"); len(got["db.example:80"]) != 0 {
		t.Errorf("the HTTP service is known as %q, but its cluster's name is that of the TCP service", got["db.example:80"])
	}
	n := parse(t, "sidecar~10.0.0.9~client~", map[string]any{"CLUSTER_ID": "c1", "HTTP_PROXY_PORT": 15080})
	if got := domainsOf(t, w.snapshot, n, "http_proxy"); len(got["db.example:80"]) != 0 || len(got["web.shop.svc.cluster.local:80"]) == 0 {
		t.Errorf("the HTTP proxy serves %q", got)
	}
	alone := sameHostname(tcp(80, federation.TCP, "10.1.0.1/32"), tcp(80, federation.HTTP, "10.1.0.2/32"))
	expectListeners(t, alone.snapshot, client(t), "10.1.0.1_80")
}

func TestTCPBesideUDPOnOnePort(t *testing.T) {
	shard := &federation.Shard{VIPs: vips("10.1.0.1/32"), Ports: []federation.Port{
		{Name: "dns", Number: 53, Protocol: federation.UDP}, {Name: "dns-tcp", Number: 53, Protocol: federation.TCP},
	}, Endpoints: []federation.Endpoint{at("10.0.0.1", 1)}}
	shard.Endpoints[0].Ports = []federation.EndpointPort{{Name: "dns", Number: 5353}, {Name: "dns-tcp", Number: 5354}}
	w := newFixture().attach("c1", "").say("c1", key("dns.shop"), shard)
	expectListeners(t, w.snapshot, client(t), "10.1.0.1_53")
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, client(t), w.snapshot), "outbound|53||dns.shop")
	if want := []string{"10.0.0.1:5354 HEALTHY"}; !slices.Equal(list(a), want) {
		t.Errorf("endpoints are %q, want %q", list(a), want)
	}
}

func TestInboundDealsWithHTTPOnly(t *testing.T) {
	local := federation.Endpoint{Address: federation.IPAddress(netip.MustParseAddr("10.0.0.9")), Ports: []federation.EndpointPort{
		{Name: "http", Number: 8080}, {Name: "raw", Number: 9000}, {Name: "both", Number: 7000},
	}}
	shard := &federation.Shard{Endpoints: []federation.Endpoint{local, at("10.0.0.8", 8081)}, Ports: []federation.Port{
		{Name: "http", Number: 80, Protocol: federation.HTTP},
		{Name: "raw", Number: 90, Protocol: federation.TCP},
		{Name: "both", Number: 70, Protocol: federation.HTTP},
	}}
	second := &federation.Shard{
		Endpoints: []federation.Endpoint{local},
		Ports:     []federation.Port{{Name: "both", Number: 71, Protocol: federation.TCP}},
	}
	w := newFixture().attach("c1", "").say("c1", webKey, shard).say("c1", key("second.shop"), second)
	w.apply(federation.Edit{
		Source: federation.ShardKey{Cluster: "c1", Provider: federation.Mock},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{
			Set: map[federation.WorkloadKey]*federation.Workload{{Name: "client"}: {
				Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
				ManagementPorts: []federation.Port{
					{Name: "probe", Number: 8080, Protocol: federation.HTTP},
					{Name: "admin", Number: 6000, Protocol: federation.HTTP},
				},
			}},
		},
	})
	l, _ := find[*listenerv3.Listener](t, build(t, envoy.ListenerType, client(t), w.snapshot), "virtualInbound")
	var ports []uint32
	for _, chain := range l.GetFilterChains() {
		ports = append(ports, chain.GetFilterChainMatch().GetDestinationPort().GetValue())
	}
	if want := []uint32{15006, 8080}; !slices.Equal(ports, want) {
		t.Errorf("chains are for the ports %d, want %d: not for TCP, mixed, management-only and other workloads' ports", ports, want)
	}
	if l.GetDefaultFilterChain() == nil {
		t.Error("other ports do not pass")
	}
}

func TestExplicitHTTPProxyWithoutCapture(t *testing.T) {
	n := parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "INTERCEPTION_MODE": "NONE", "HTTP_PROXY_PORT": 15080})
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	if got := namesOf(build(t, envoy.ListenerType, n, w.snapshot)); !slices.Equal(got, []string{"127.0.0.1_15080"}) {
		t.Errorf("listeners are %q", got)
	}
	if got := leadsTo(t, w.snapshot, n, "127.0.0.1_15080"); got != "http_proxy" {
		t.Errorf("the proxy port leads to %s", got)
	}
}
