package envoy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// explain returns what Explain reports about the endpoints of web.
func explain(w *fixture, n envoy.Node, port uint16) []federation.Explanation {
	_, endpoints := envoy.Explain(n, webKey.Hostname, port, w.snapshot)
	return endpoints
}

// explained writes what Explain reports about web as ADDRESS@CLUSTER VIA CODE CAUSE.
func explained(w *fixture, n envoy.Node, port uint16) []string {
	var all []string
	for _, e := range explain(w, n, port) {
		text := fmt.Sprintf("%s@%s %s %s", e.Endpoint.Address, e.Cluster(), e.Via, e.Code)
		if e.Cause != (federation.ObjectKey{}) {
			text += " " + e.Cause.Title()
		}
		if e.Included == (e.Via == federation.ViaNone) {
			text += " but included is " + fmt.Sprint(e.Included)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// explainFixture has an endpoint for most fates that one may have.
func explainFixture(t testing.TB) *fixture {
	plain, sick := meshed("10.2.0.2", "n2", 0), meshed("10.1.0.2", "n1", 0)
	plain.TLSMode, sick.Health = "", federation.Unhealthy
	other := web(meshed("10.3.0.1", "n3", 0))
	other.Ports[0].Number = 81
	restricted := gatewaysAt("192.0.2.4")
	restricted.Gateways[0].From = []federation.NetworkID{"n2"}
	return newFixture().attach("c1", "n1").attach("c2", "n2").attach("c3", "n3").attach("c4", "n4").attach("c5", "n5").
		network("n2", gatewaysAt("192.0.2.2", "192.0.2.3")).network("n4", restricted).
		say("c1", webKey, web(meshed("10.1.0.1", "n1", 0), sick, meshed("10.1.0.3", "lost", 0))).
		say("c2", webKey, web(meshed("10.2.0.1", "n2", 3), plain)).say("c3", webKey, other).
		say("c4", webKey, web(meshed("10.4.0.1", "n4", 0))).say("c5", webKey, web(meshed("10.5.0.1", "n5", 0)))
}

func TestExplainSaysWhyOfEveryEndpoint(t *testing.T) {
	want := []string{
		"10.1.0.1@c1 DIRECT DIRECT",
		"10.1.0.2@c1 NONE UNHEALTHY",
		"10.1.0.3@c1 NONE UNKNOWN_NETWORK",
		"10.2.0.1@c2 GATEWAY GATEWAY Network n2",
		"10.2.0.2@c2 NONE NO_MUTUAL_TLS",
		"10.3.0.1@c3 NONE PORT_NOT_DECLARED",
		"10.4.0.1@c4 NONE NO_GATEWAY_FOR_NETWORK Network n4",
		"10.5.0.1@c5 DIRECT DIRECT",
	}
	w := explainFixture(t)
	if got := explained(w, one(t), 80); !slices.Equal(got, want) {
		t.Errorf("the endpoints are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for name, c := range map[string]struct {
		rule string
		port uint16
		want string // of an endpoint that has nothing else against it
	}{
		"no such port": {"", 82, "10.1.0.1@c1 NONE NO_PORT"},
		"not imported": {
			"kind: Sidecar\nmetadata: {name: few, namespace: shop}\nspec: {egress: [{hosts: [other/*]}]}", 80,
			"10.1.0.1@c1 NONE NOT_IMPORTED Sidecar shop/few",
		},
		"TLS of a rule": {"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {tls: {mode: MUTUAL}}}", 80, "10.1.0.1@c1 NONE TLS_NOT_AVAILABLE DestinationRule shop/web"},
	} {
		w := explainFixture(t)
		if c.rule != "" {
			w.config(t, c.rule)
		}
		if got := explained(w, one(t), c.port); len(got) != len(want) || got[0] != c.want {
			t.Errorf("%s: the endpoints are %q, want the first to be %q", name, got, c.want)
		}
	}
	hidden := web(meshed("10.1.0.1", "n1", 0))
	hidden.ExportTo = []string{"other"}
	w = newFixture().attach("c1", "n1").say("c1", webKey, hidden)
	if got := explained(w, one(t), 80); !slices.Equal(got, []string{"10.1.0.1@c1 NONE NOT_VISIBLE"}) {
		t.Errorf("of a service that is not exported: %q", got)
	}
}

// TestK86ExplainSaysThatAPortIsTaken: a service of a registry whose requests go to a port at which the sidecar listens itself has no
// listener, and the explanation says so to the proxies that have none.
func TestK86ExplainSaysThatAPortIsTaken(t *testing.T) {
	agent := one(t)
	agent.Agent = true
	client := one(t)
	client.GRPC = true
	for _, c := range []struct {
		about    string
		node     envoy.Node
		port     uint16
		protocol federation.Protocol
		want     string
	}{
		{"captured connections", one(t), 15001, federation.HTTP, "NONE PORT_RESERVED"},
		{"statistics of the agent", agent, 15090, federation.GRPC, "NONE PORT_RESERVED"},
		{"no agent beside the proxy", one(t), 15090, federation.HTTP, "DIRECT DIRECT"},
		{"connections to its VIP", agent, 15021, federation.TCP, "DIRECT DIRECT"},
		{"no proxy", client, 15001, federation.HTTP, "DIRECT DIRECT"},
		{"another port", agent, 15000, federation.HTTP, "DIRECT DIRECT"},
	} {
		shard := web(meshed("10.1.0.1", "n1", 0))
		shard.Ports[0].Number, shard.Ports[0].Protocol = c.port, c.protocol
		w := newFixture().attach("c1", "n1").say("c1", webKey, shard)
		if got := explained(w, c.node, c.port); !slices.Equal(got, []string{"10.1.0.1@c1 " + c.want}) {
			t.Errorf("%s: %q, want %s", c.about, got, c.want)
		}
		listens := slices.Contains(namesOf(build(t, envoy.ListenerType, c.node, w.snapshot)), fmt.Sprintf("0.0.0.0_%d", c.port))
		if c.protocol.IsHTTP() && !c.node.GRPC && listens != (c.want == "DIRECT DIRECT") {
			t.Errorf("%s: the proxy has a listener: %t", c.about, listens)
		}
	}
}

// sockets are the addresses that an explanation promises.
func sockets(all []federation.Explanation, s *federation.Snapshot, from federation.NetworkID) []string {
	var found []string
	for _, e := range all {
		switch e.Via {
		case federation.ViaDirect:
			ip, _ := e.Endpoint.Address.IP()
			number, _ := e.Endpoint.Port("http")
			found = append(found, fmt.Sprintf("%s:%d", ip, number))
		case federation.ViaGateway:
			n, _ := s.Network(e.Endpoint.Network)
			for _, g := range n.GatewaysFrom(from) {
				found = append(found, g.Address.String())
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestPropertyExplainAgreesWithWhatIsBuilt: what it promises is in the assignment,
// and nothing else.
func TestPropertyExplainAgreesWithWhatIsBuilt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newFixture()
		for i, n := range drawNetworks(rt) {
			n.tell(w, i)
		}
		if rapid.Bool().Draw(rt, "identity off") {
			w.config(t,
				"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {tls: {mode: DISABLE}}}")
		}
		var built []string
		for address := range weights(t, w, one(t)) {
			built = append(built, address)
		}
		slices.Sort(built)
		if got := sockets(explain(w, one(t), 80), w.snapshot, "n1"); !slices.Equal(got, built) {
			rt.Fatalf("explained are %q, built %q", got, built)
		}
	})
}

// TestExplainAgreesWithARealEnvoy compares with what its /clusters lists.
func TestExplainAgreesWithARealEnvoy(t *testing.T) {
	w := explainFixture(t)
	assignments := build(t, envoy.EndpointType, one(t), w.snapshot)
	_, _ = find[*endpointv3.ClusterLoadAssignment](t, assignments, "outbound|80||web.shop.svc.cluster.local")
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{
		Name: "explained", Config: bootstrap(t, map[envoy.Type][]builtResource{envoy.EndpointType: assignments}),
		Namespace: testbed.NewNamespace(t, "explained"),
	})
	proxy.WaitReady(30 * time.Second)
	var listed struct {
		Statuses []struct {
			Name  string `json:"name"`
			Hosts []struct {
				Address struct {
					Socket struct {
						Address string `json:"address"`
						Port    int    `json:"port_value"`
					} `json:"socket_address"`
				} `json:"address"`
				Weight int `json:"weight"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal(proxy.Clusters(), &listed); err != nil {
		t.Fatal(err)
	}
	var got []string
	weighs := map[string]int{}
	for _, c := range listed.Statuses {
		if strings.HasSuffix(c.Name, "outbound|80||web.shop.svc.cluster.local") {
			for _, h := range c.Hosts {
				at := fmt.Sprintf("%s:%d", h.Address.Socket.Address, h.Address.Socket.Port)
				got, weighs[at] = append(got, at), h.Weight
			}
		}
	}
	slices.Sort(got)
	if want := sockets(explain(w, one(t), 80), w.snapshot, "n1"); !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("Envoy has %q, explained are %q", got, want)
	}
	if fmt.Sprint(weighs) != "map[10.1.0.1:8080:2 10.5.0.1:8080:2 192.0.2.2:15443:3 192.0.2.3:15443:3]" {
		t.Errorf("Envoy weighs %v", weighs)
	}
}
