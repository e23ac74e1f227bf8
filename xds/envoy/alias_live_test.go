package envoy_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// TestR82RequestsToAnExternalNameReachAStrictService: by HTTP and by TCP, with and
// without ports, through real proxies. DNS gives the address of the service.
func TestR82RequestsToAnExternalNameReachAStrictService(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "mesh")
	shard := database("db-0=10.7.0.2")
	shard.Resolution, shard.VIPs = federation.ClientSideLB, vips("10.96.0.1/32")
	fixture := newFixture().attach("c1", "").say("c1", key(databaseHost), shard).
		say("c1", key("alias.shop.svc.cluster.local"),
			externalName(databaseHost, federation.Port{Name: "http", Number: 8080, Protocol: federation.HTTP})).
		say("c1", key("noport.shop.svc.cluster.local"), externalName("alias.shop.svc.cluster.local")).snapshot
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "db", Namespace: server, HTTP: []int{8080}, TCP: []int{9000}})
	meshPod(t, server, "10.7.0.2", "db", authority, fixture, true)
	caller, _ := pod(t, network, "10.7.0.9", nil)
	meshPod(t, caller, "10.7.0.9", "client", authority, fixture, false)
	caller.CaptureDNS(testbed.ProxyUID)
	for _, host := range []string{"alias.shop.svc.cluster.local", "noport.shop.svc.cluster.local"} {
		found, err := lookup(caller, "ip4", host+".")
		if err != nil || !slices.Equal(found, []netip.Addr{netip.MustParseAddr("10.96.0.1")}) {
			t.Errorf("%s resolves to %v, %v", host, found, err)
			continue
		}
		r := caller.Get("http://"+found[0].String()+":8080/", "Host", host+":8080")
		if r.Err != nil || r.Status != 200 || !strings.Contains(r.Echo(t).Header.Get("X-Forwarded-Client-Cert"), "/sa/client") {
			t.Errorf("%s: %d %v %s", host, r.Status, r.Err, r.Body)
		}
		if got := sayLine(t, caller, found[0].String()+":9000"); got != "db hello\n" {
			t.Errorf("%s: TCP answers %q", host, got)
		}
	}
}
