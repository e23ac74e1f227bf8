package envoy_test

import (
	"io"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

// manySorts has services of every sort on port 80: HTTP and TCP, of this cluster
// and of another, found by EDS, by DNS and by the caller itself, and two with one
// VIP.
func manySorts() *federation.Snapshot {
	over := func(shard *federation.Shard, r federation.Resolution, endpoint string, port uint16) *federation.Shard {
		e := at(endpoint, port)
		e.Ports[0].Name = "p"
		shard.Resolution, shard.Endpoints = r, []federation.Endpoint{e}
		return shard
	}
	inOther := func(name string) federation.ServiceKey {
		return federation.ServiceKey{Hostname: federation.Hostname(name + ".other.svc.cluster.local"), Namespace: "other"}
	}
	return newFixture().attach("c1", "").attach("c2", "").
		say("c1", webKey, over(httpOn(80, "10.96.0.1/32"), federation.ClientSideLB, "10.7.0.2", 8080)).
		say("c1", key("raw.shop.svc.cluster.local"), over(tcp(80, federation.TCP, "10.96.0.2/32"), federation.ClientSideLB, "10.7.0.2", 9000)).
		say("c1", key("second.shop.svc.cluster.local"), over(tcp(80, federation.TCP, "10.96.0.2/32"), federation.ClientSideLB, "10.7.0.3", 9000)).
		say("c1", inOther("dns"), over(httpOn(80, "10.96.0.3/32"), federation.DNSLB, "10.7.0.2", 8080)).
		say("c1", inOther("headless"), over(httpOn(80), federation.Passthrough, "10.7.0.3", 80)).
		say("c1", inOther("database"), over(tcp(80, federation.TCP), federation.Passthrough, "10.7.0.4", 80)).
		say("c2", inOther("far"), over(httpOn(80, "10.97.0.1/32"), federation.ClientSideLB, "10.7.0.3", 80)).
		say("c2", inOther("far-raw"), over(tcp(80, federation.TCP, "10.97.0.2/32"), federation.ClientSideLB, "10.7.0.3", 9000)).snapshot
}

func TestEnvoyServesEverySortOfServiceOnOnePort(t *testing.T) {
	fixture, network := manySorts(), testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	first, _ := pod(t, network, "10.7.0.2", nil)
	second, _ := pod(t, network, "10.7.0.3", nil)
	third, _ := pod(t, network, "10.7.0.4", nil)
	caller, proxy := pod(t, network, "10.7.0.9", fixture)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "first", Namespace: first, HTTP: []int{8080}, TCP: []int{9000}})
	testbed.StartEcho(t, testbed.EchoOptions{Name: "second", Namespace: second, HTTP: []int{80}, TCP: []int{9000}})
	testbed.StartEcho(t, testbed.EchoOptions{Name: "third", Namespace: third, TCP: []int{80}})
	for _, c := range []struct{ address, host, cluster, want string }{
		{"10.96.0.1", "10.96.0.1", "outbound|80||web.shop.svc.cluster.local", "first"},
		{"10.96.0.1", "web", "outbound|80||web.shop.svc.cluster.local", "first"},
		{"10.96.0.1", "web.shop.svc:80", "outbound|80||web.shop.svc.cluster.local", "first"},
		{"10.96.0.1", "WEB.shop.svc.cluster.local.", "outbound|80||web.shop.svc.cluster.local", "first"},
		{"10.96.0.3", "dns.other", "outbound|80||dns.other.svc.cluster.local", "first"},
		{"10.7.0.3", "headless.other", "outbound|80||headless.other.svc.cluster.local", "second"},
		{"10.7.0.3", "unknown.example", "PassthroughCluster", "second"},
		{"10.97.0.1", "far.other.svc", "outbound|80||far.other.svc.cluster.local", "second"},
		{"10.97.0.1", "10.97.0.1", "outbound|80||far.other.svc.cluster.local", "second"},
	} {
		requests := "cluster." + c.cluster + ".upstream_rq_total"
		before := proxy.Stat(requests)
		response := caller.Get("http://"+c.address+"/", "Host", c.host)
		if response.Err != nil || response.Status != 200 {
			t.Errorf("%s at %s: %d %v", c.host, c.address, response.Status, response.Err)
			continue
		}
		if got := response.Echo(t).Name; got != c.want || proxy.Stat(requests) != before+1 {
			t.Errorf("%s at %s is answered by %s, want %s through %s", c.host, c.address, got, c.want, c.cluster)
		}
	}
	for address, want := range map[string]string{
		"10.96.0.2:80": "first hello\n", "10.97.0.2:80": "second hello\n",
		"10.7.0.4:80": "third hello\n",
	} {
		if got := sayLine(t, caller, address); got != want {
			t.Errorf("%s answers %q, want %q", address, got, want)
		}
	}
}

// A server that speaks first, on a port where others speak HTTP, reaches its client.
func TestEnvoyLetsAServerSpeakFirstOnAPortOfHTTP(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	server, _ := pod(t, network, "10.7.0.4", nil)
	caller, _ := pod(t, network, "10.7.0.9", manySorts())
	listener, err := server.Listen("10.7.0.4:80")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 ready\n")
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); served.Wait() })
	conn, err := caller.DialContext(t.Context(), "tcp", "10.7.0.4:80")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); err != nil || string(said) != "220 ready\n" {
		t.Errorf("heard %q, %v", said, err)
	}
}

// A request to the explicit proxy has no other destination than its host.
func TestExplicitHTTPProxyLeavesOutWhatTheCallerMustFind(t *testing.T) {
	n := parse(t, "sidecar~10.0.0.9~client~", map[string]any{"CLUSTER_ID": "c1", "HTTP_PROXY_PORT": 15080})
	if got := domainsOf(t, manySorts(), n, "http_proxy"); got["headless.other.svc.cluster.local:80"] != nil ||
		got["far.other.svc.cluster.local:80"] == nil {
		t.Errorf("the HTTP proxy serves %q", got)
	}
	for _, r := range build(t, envoy.RouteType, n, manySorts()) {
		if r.name == "http_proxy" && (len(r.reasons) != 1 || r.reasons[0].Code != resource.ReasonNoDestination) {
			t.Errorf("reasons are %v", r.reasons)
		}
	}
}
