package envoy_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/netip"
	neturl "net/url"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// sidecarConfig is what a sidecar is sent, without a hub: assignments are put
// into their clusters and routes into their listeners.
func sidecarConfig(t *testing.T, n envoy.Node, s *federation.Snapshot) []byte {
	t.Helper()
	built := buildAll(t, n, s)
	static := &bootstrapv3.Bootstrap_StaticResources{}
	for _, r := range built[envoy.ClusterType] {
		c := r.message.(*clusterv3.Cluster)
		if c.GetType() == clusterv3.Cluster_EDS {
			c.EdsClusterConfig, c.ClusterDiscoveryType = nil, &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			c.LoadAssignment, _ = find[*endpointv3.ClusterLoadAssignment](t, built[envoy.EndpointType], r.name)
		}
		static.Clusters = append(static.Clusters, c)
	}
	for _, r := range built[envoy.ListenerType] {
		l := r.message.(*listenerv3.Listener)
		for _, chain := range l.GetFilterChains() {
			filter := chain.GetFilters()[0]
			m, err := filter.GetTypedConfig().UnmarshalNew()
			if err != nil {
				t.Fatal(err)
			}
			if manager, ok := m.(*hcmv3.HttpConnectionManager); ok && manager.GetRds() != nil {
				routes, _ := find[*routev3.RouteConfiguration](t, built[envoy.RouteType], manager.GetRds().GetRouteConfigName())
				manager.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes}
				filter.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, manager)}
			}
		}
		static.Listeners = append(static.Listeners, l)
	}
	config, err := protojson.Marshal(&bootstrapv3.Bootstrap{StaticResources: static})
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// A pod is a namespace with an address and, if it is asked for, a sidecar.
func pod(t *testing.T, network *testbed.Network, address string, s *federation.Snapshot) (*testbed.Namespace, *testbed.Envoy) {
	t.Helper()
	ns := testbed.NewNamespace(t, address)
	ns.Join(network, address)
	if s == nil {
		return ns, nil
	}
	n := parse(t, "sidecar~"+address+"~pod.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "HTTP_PROXY_PORT": 15080})
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "sidecar-" + address, Config: sidecarConfig(t, n, s), Namespace: ns})
	proxy.WaitReady(time.Minute)
	ns.Capture(testbed.ProxyUID)
	return ns, proxy
}

func sidecarFixture() *federation.Snapshot {
	raw := tcp(90, federation.TCP, "10.96.0.2/32")
	raw.Endpoints = []federation.Endpoint{{
		Address: federation.IPAddress(netip.MustParseAddr("10.7.0.2")),
		Ports:   []federation.EndpointPort{{Name: "p", Number: 9000}},
	}}
	shop := web(at("10.7.0.2", 8080), at("10.7.0.3", 8080), at("10.7.0.4", 8080)) // nothing listens on the last
	shop.VIPs = vips("10.96.0.1/32")
	return newFixture().attach("c1", "").say("c1", webKey, shop).say("c1", key("raw.shop"), raw).snapshot
}

// Requests of a captured workload reach workloads with and without a sidecar,
// by VIP, by name and directly; a dead endpoint fails none of them.
func TestCapturedTrafficReachesTheWorkloads(t *testing.T) {
	fixture, network := sidecarFixture(), testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	first, firstProxy := pod(t, network, "10.7.0.2", fixture)
	second, _ := pod(t, network, "10.7.0.3", nil)
	pod(t, network, "10.7.0.4", nil)
	caller, _ := pod(t, network, "10.7.0.9", fixture)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "first", Namespace: first, HTTP: []int{8080, 7777}, TCP: []int{9000}})
	testbed.StartEcho(t, testbed.EchoOptions{Name: "second", Namespace: second, HTTP: []int{8080}})

	answered := map[string]int{}
	for i := range 30 {
		response := caller.Get("http://10.96.0.1/")
		if response.Err != nil || response.Status != 200 {
			t.Fatalf("request %d to the VIP: %d %v", i, response.Status, response.Err)
		}
		answer := response.Echo(t)
		answered[answer.Name]++
		if remote := netip.MustParseAddrPort(answer.Remote).Addr().String(); answer.Name == "first" && remote != "127.0.0.6" {
			t.Fatalf("the workload with a sidecar is spoken to by %s, not by its sidecar", remote)
		}
	}
	if answered["first"] == 0 || answered["second"] == 0 {
		t.Errorf("answers came %v, want both workloads", answered)
	}
	if n := firstProxy.Stat("http.inbound_8080.downstream_rq_total"); int(n) != answered["first"] {
		t.Errorf("the sidecar saw %d inbound requests, the workload %d", n, answered["first"])
	}
	if answer := caller.Get("http://10.7.0.2:7777/").Echo(t); answer.Name != "first" {
		t.Errorf("an address that no service has is answered by %q", answer.Name)
	}
	if got := sayLine(t, caller, "10.96.0.2:90"); got != "first hello\n" {
		t.Errorf("the TCP service answers %q", got)
	}
	if own := first.Get("http://10.7.0.2:8080/").Echo(t); own.Name != "first" {
		t.Errorf("a workload that calls itself is answered by %q", own.Name)
	}
}

func sayLine(t *testing.T, from *testbed.Namespace, address string) string {
	t.Helper()
	line, err := lineOf(t, from, address)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// lineOf is the answer to a line over TCP.
func lineOf(t *testing.T, from *testbed.Namespace, address string) (string, error) {
	t.Helper()
	conn, err := from.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "hello")
	return bufio.NewReader(conn).ReadString('\n')
}

// Draining endpoints get requests only where nothing healthy is left.
func TestDrainingEndpointsAreTheLastResort(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	for _, address := range []string{"10.7.0.2", "10.7.0.3"} {
		ns, _ := pod(t, network, address, nil)
		testbed.StartEcho(t, testbed.EchoOptions{Name: address, Namespace: ns, HTTP: []int{8080}})
	}
	draining := func(addresses ...string) *federation.Snapshot {
		shard := web(at("10.7.0.2", 8080), at("10.7.0.3", 8080))
		shard.VIPs = vips("10.96.0.1/32")
		for i := range addresses {
			shard.Endpoints[i].Health = federation.Draining
		}
		return newFixture().attach("c1", "").say("c1", webKey, shard).snapshot
	}
	answers := func(from *testbed.Namespace) map[string]int {
		count := map[string]int{}
		for range 20 {
			count[from.Get("http://10.96.0.1/").Echo(t).Name]++
		}
		return count
	}
	one, _ := pod(t, network, "10.7.0.8", draining("10.7.0.2"))
	if got := answers(one); got["10.7.0.3"] != 20 {
		t.Errorf("with one endpoint draining the answers come from %v", got)
	}
	all, _ := pod(t, network, "10.7.0.9", draining("10.7.0.2", "10.7.0.3"))
	if got := answers(all); got["10.7.0.2"] == 0 || got["10.7.0.3"] == 0 {
		t.Errorf("with all endpoints draining the answers come from %v", got)
	}
}

// The explicit HTTP proxy serves known hosts by any of their names and refuses
// others.
func TestExplicitHTTPProxyServesKnownHosts(t *testing.T) {
	fixture, network := sidecarFixture(), testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	for _, address := range []string{"10.7.0.2", "10.7.0.3"} {
		ns, _ := pod(t, network, address, nil)
		testbed.StartEcho(t, testbed.EchoOptions{Name: address, Namespace: ns, HTTP: []int{8080}})
	}
	caller, _ := pod(t, network, "10.7.0.9", fixture)
	for url, want := range map[string]int{
		"http://web.shop.svc.cluster.local/path": 200, "http://web/": 200, "http://web.shop:80/": 200, "http://10.96.0.1/": 200,
		"http://unknown.example/": 502, "http://web:81/": 502,
	} {
		if got := statusThroughProxy(t, caller, url); got != want {
			t.Errorf("%s is answered with %d, want %d", url, got, want)
		}
	}
}

func statusThroughProxy(t *testing.T, from *testbed.Namespace, url string) int {
	t.Helper()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		Proxy: http.ProxyURL(&neturl.URL{Scheme: "http", Host: "127.0.0.1:15080"}), DialContext: from.DialContext, DisableKeepAlives: true,
	}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
