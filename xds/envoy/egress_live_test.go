package envoy_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
)

// outside starts a server outside of the mesh that speaks TLS at the port, as any of
// the names of example.com.
func outside(t *testing.T, network *testbed.Network, authority *testbed.Authority, address string, port int) {
	t.Helper()
	ns, _ := pod(t, network, address, nil)
	testbed.StartEcho(t, testbed.EchoOptions{
		Name: address, Namespace: ns, HTTP: []int{port},
		TLS: authority.TLS(testbed.Subject{Name: "outside", Hosts: []string{"*.example.com"}}),
	})
}

// secureGet asks for the URL, whose host is an address, with that server name; it
// returns the name of the server that answered.
func secureGet(t *testing.T, from *testbed.Namespace, authority *testbed.Authority, url, server string) (string, error) {
	t.Helper()
	client := from.Client(&tls.Config{RootCAs: authority.Pool(), ServerName: server})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer testbed.EchoAnswer
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Name, err
}

// external is a ServiceEntry for one port, with endpoints at that port.
func external(port uint16, protocol federation.Protocol, endpoints ...string) *federation.Shard {
	s := tcp(port, protocol)
	s.MeshExternal = true
	for _, address := range endpoints {
		e := at(address, port)
		e.Ports[0].Name = "p"
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

// A caller without DNS capture reaches an allowed HTTPS host, which has an allocated
// VIP, at any address by the name of the server, and a TCP service without an address by its
// port (K65); other hosts and ports stay blocked.
func TestR20AllocatedVIPsDoNotHideServerNames(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "live")
	outside(t, network, authority, "10.7.0.2", 443)
	entry := external(443, federation.HTTPS, "10.7.0.2")
	entry.VIPs = vips("240.240.0.9/32", "2001:2::9/128")
	db, _ := pod(t, network, "10.7.0.4", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "db", Namespace: db, TCP: []int{5432, 6000, 6001}})
	anywhere := external(6000, federation.TCP)
	anywhere.Resolution = federation.Passthrough
	w := newFixture().attach("c1", "").say("c1", key("api.example.com"), entry).
		entries([]federation.Hostname{"db.example.com", "any.example.com"}, external(5432, federation.TCP, "10.7.0.4"), anywhere).
		config(t, "kind: MeshSettings\nspec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}")
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for _, address := range []string{"10.7.0.3:5432", "10.7.0.4:6000"} {
		if got := sayLine(t, caller, address); got != "db hello\n" {
			t.Errorf("%s answers %q", address, got)
		}
	}
	if !refusedLine(t, caller, "10.7.0.4:6001") {
		t.Error("a port that no entry allows is reached")
	}
	if name, err := secureGet(t, caller, authority, "https://10.7.0.3/", "api.example.com"); name != "10.7.0.2" {
		t.Errorf("the allowed host is answered by %q (%v), want its endpoint 10.7.0.2", name, err)
	}
	if name, err := secureGet(t, caller, authority, "https://10.7.0.2/", "other.example.com"); err == nil {
		t.Errorf("a host that no entry allows is answered by %q", name)
	}
}

// Callers with DNS capture know the allocated VIP: their listener is there, and only
// there.
func TestR20AllocatedVIPsServeCallersWithDNSCapture(t *testing.T) {
	entry := external(443, federation.HTTPS, "10.7.0.2")
	entry.VIPs = vips("240.240.0.9/32")
	w := newFixture().attach("c1", "").say("c1", key("api.example.com"), entry)
	expectListeners(t, w.snapshot, client(t), "0.0.0.0_443")
	captured := parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "DNS_CAPTURE": true})
	got := leadsTo(t, w.snapshot, captured, "240.240.0.9_443")
	if got != "outbound|443||api.example.com" {
		t.Errorf("the allocated VIP leads to %q", got)
	}
}

// HTTP and TLS that is routed by server name share a port with everything else:
// TLS to a host of which no entry speaks passes, whatever ALPN it offers.
func TestR21TLSOfOtherHostsPassesAPortOfHTTP(t *testing.T) {
	network, authority := testbed.NewNetwork(t, "pods", "10.7.0.0/24"), testbed.NewAuthority(t, "live")
	outside(t, network, authority, "10.7.0.2", 9443)
	named := external(9443, federation.TLS)
	named.Resolution = federation.Passthrough
	w := newFixture().attach("c1", "").
		say("c1", key("h.example.com"), external(9443, federation.HTTP, "10.7.0.2")).
		say("c1", key("s.example.com"), named)
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for _, server := range []string{"zz.example.com", "s.example.com"} {
		if name, err := secureGet(t, caller, authority, "https://10.7.0.2:9443/", server); name != "10.7.0.2" {
			t.Errorf("%s is answered by %q (%v), want 10.7.0.2", server, name, err)
		}
	}
	if r := caller.Get("http://10.7.0.3:9443/", "Host", "h.example.com"); r.Err != nil || r.Status == 0 {
		t.Errorf("plain HTTP is not routed any more: %v", r.Err)
	}
}
