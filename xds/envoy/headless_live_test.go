package envoy_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/transport"
)

// meshPod starts a sidecar of c1 with an identity; strict: what it takes from
// others is mutual TLS alone.
func meshPod(t *testing.T, ns *testbed.Namespace, address, account string, a *testbed.Authority, s *federation.Snapshot,
	strict bool,
) *testbed.Envoy {
	t.Helper()
	n := parse(t, "sidecar~"+address+"~pod.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "IDENTITY_SOURCE": "ads", "DNS_CAPTURE": "true"})
	chain, private := a.Issue(testbed.Subject{Hosts: []string{"spiffe://cluster.local/ns/shop/sa/" + account}})
	config := withSecrets(t, sidecarConfig(t, n, s), transport.KeyMaterial{
		Chain: chain, Key: private,
		Bundles: map[string][]byte{"cluster.local": a.PEM},
	})
	if strict {
		config = strictly(t, config)
	}
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "sidecar-" + address, Config: config, Namespace: ns})
	proxy.WaitReady(time.Minute)
	ns.Capture(testbed.ProxyUID)
	return proxy
}

// strictly leaves of the inbound listener what ends mutual TLS, as a
// PeerAuthentication with mode STRICT does.
func strictly(t *testing.T, config []byte) []byte {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(config, &root); err != nil {
		t.Fatal(err)
	}
	for _, l := range root["staticResources"].(map[string]any)["listeners"].([]any) {
		listener := l.(map[string]any)
		if listener["name"] != "virtualInbound" {
			continue
		}
		delete(listener, "defaultFilterChain")
		listener["filterChains"] = slices.DeleteFunc(listener["filterChains"].([]any), func(chain any) bool {
			return chain.(map[string]any)["transportSocket"] == nil
		})
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestR81RequestsReachAStrictHeadlessService: by the address and by the name of a
// pod, by HTTP and by TCP, through real proxies. A pod with a certificate of
// another account is not spoken to.
func TestR81RequestsReachAStrictHeadlessService(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
	fixture := newFixture().attach("c1", "").say("c1", key(databaseHost), database("db-0=10.7.0.2", "db-1=10.7.0.3")).snapshot
	for address, account := range map[string]string{"10.7.0.2": "db", "10.7.0.3": "impostor"} {
		ns, _ := pod(t, network, address, nil)
		testbed.StartEcho(t, testbed.EchoOptions{Name: account, Namespace: ns, HTTP: []int{8080}, TCP: []int{9000}})
		meshPod(t, ns, address, account, authority, fixture, true)
	}
	caller, _ := pod(t, network, "10.7.0.9", nil)
	proxy := meshPod(t, caller, "10.7.0.9", "client", authority, fixture, false)
	caller.CaptureDNS(testbed.ProxyUID)

	stranger, _ := pod(t, network, "10.7.0.8", nil)
	if r := stranger.Get("http://10.7.0.2:8080/"); r.Err == nil {
		t.Fatalf("the server takes plain text: %d", r.Status)
	}
	for _, host := range []string{databaseHost, "db-0." + databaseHost, "db-0.db.shop", "db-0.db"} {
		r := caller.Get("http://10.7.0.2:8080/", "Host", host+":8080")
		if r.Err != nil || r.Status != 200 {
			t.Errorf("%s: %d %v %s", host, r.Status, r.Err, r.Body)
			continue
		}
		if peer := r.Echo(t).Header.Get("X-Forwarded-Client-Cert"); !strings.Contains(peer, "/sa/client") {
			t.Errorf("%s: the server sees the caller %q", host, peer)
		}
	}
	found, err := lookup(caller, "ip4", "db-0."+databaseHost+".")
	if err != nil || !slices.Equal(found, []netip.Addr{netip.MustParseAddr("10.7.0.2")}) {
		t.Errorf("the name of the pod resolves to %v, %v", found, err)
	}
	if got := sayLine(t, caller, "10.7.0.2:9000"); got != "db hello\n" {
		t.Errorf("TCP answers %q", got)
	}
	if r := caller.Get("http://10.7.0.3:8080/", "Host", "db-1."+databaseHost); r.Status != 503 {
		t.Errorf("a pod of another account answers %d %v", r.Status, r.Err)
	}
	if n := proxy.Stat("cluster." + databaseCluster + ".ssl.handshake"); n != 1 {
		t.Errorf("the TCP connection made %d handshakes", n)
	}
}
