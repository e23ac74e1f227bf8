package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// found says what probes from n1 find of gateways.
func (w *fixture) found(reachable bool, gateways ...string) *fixture {
	e := federation.Edit{Verdicts: federation.Delta[federation.VerdictKey,
		federation.Verdict]{Set: map[federation.VerdictKey]federation.Verdict{}}}
	for _, g := range gateways {
		key := federation.VerdictKey{Observer: "n1", Gateway: netip.MustParseAddrPort(g + ":15443")}
		e.Verdicts.Set[key] = federation.Verdict{Reachable: reachable, Since: time.Unix(1, 0)}
	}
	return w.apply(e)
}

// status is what the control link reports about a cluster.
func (w *fixture) status(id federation.ClusterID, phase federation.Phase) *fixture {
	return w.apply(federation.Edit{
		Source: federation.ShardKey{Cluster: id, Provider: federation.Mock}, Status: &federation.RegistryStatus{Phase: phase},
	})
}

func assignmentOf(t *testing.T, w *fixture, n envoy.Node) *endpointv3.ClusterLoadAssignment {
	t.Helper()
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, n, w.snapshot), "outbound|80||web.shop.svc.cluster.local")
	return a
}

// TestF86AllGatewaysOfANetworkAreDown: the last set stays where there is nothing
// else, and comes after what else there is; it never becomes empty.
func TestF86AllGatewaysOfANetworkAreDown(t *testing.T) {
	behind := func() *fixture {
		return newFixture().attach("c1", "n1").attach("c2", "n2").attach("c3", "n3").
			network("n2", gatewaysAt("192.0.2.1", "192.0.2.2")).network("n3", gatewaysAt("192.0.2.3")).
			say("c2", webKey, web(meshed("10.0.2.1", "n2", 0)))
	}
	alone := behind()
	before := assignmentOf(t, alone, one(t))
	if after := assignmentOf(t, alone.found(false, "192.0.2.1", "192.0.2.2"), one(t)); !proto.Equal(before, after) {
		t.Errorf("with nothing else the endpoints become %v", list(after))
	}
	for name, c := range map[string]struct {
		with *fixture
		want string
	}{
		"another network": {behind().say("c3", webKey, web(meshed("10.0.3.1", "n3", 0))), "0:192.0.2.3 1:192.0.2.1 1:192.0.2.2"},
		"the own network": {behind().say("c1", webKey, web(meshed("10.0.1.1", "n1", 0))), "0:10.0.1.1 1:192.0.2.1 1:192.0.2.2"},
	} {
		t.Run(name, func(t *testing.T) {
			healthy := assignmentOf(t, c.with, one(t))
			if got := priorities(t, c.with.found(false, "192.0.2.1", "192.0.2.2"), one(t)); got != c.want {
				t.Errorf("priorities are %s, want %s", got, c.want)
			}
			for _, e := range explain(c.with, one(t), 80) {
				if !e.Included {
					t.Errorf("%s is excluded: %s", e.Endpoint.Address, e.Message)
				}
			}
			if n, _ := c.with.snapshot.Network("n2"); !slices.Equal(n.GatewayStatesFrom("n1"),
				[]federation.GatewayState{federation.LastResort, federation.LastResort}) {
				t.Errorf("the gateways are %v", n.GatewayStatesFrom("n1"))
			}
			if back := assignmentOf(t, c.with.found(true, "192.0.2.1", "192.0.2.2"), one(t)); !proto.Equal(back, healthy) {
				t.Errorf("when all is well again the endpoints are %v", list(back))
			}
		})
	}
}

// TestF87GatewaysMove: the address is another in the next assignment, and one that
// is refused is not a gateway at all.
func TestF87GatewaysMove(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.1")).say("c2", webKey,
		web(meshed("10.0.2.1", "n2", 0)))
	w.network("n2", gatewaysAt("192.0.2.9"))
	if got := fmt.Sprint(weights(t, w, one(t))); got != "map[192.0.2.9:15443:1]" {
		t.Errorf("after the move the weights are %s", got)
	}
	w.network("n2", gatewaysAt("169.254.169.254"))
	if got := weights(t, w, one(t)); len(got) != 0 {
		t.Errorf("proxies are sent to %v", got)
	}
	if got := fmt.Sprint(explained(w, one(t), 80)); got != "[10.0.2.1@c2 NONE NO_GATEWAY_ADDRESS Network n2]" {
		t.Errorf("it is explained as %s", got)
	}
}

// TestF88NetworkOfAnEndpointIsMissingOrAnother: what names no network is in that of
// its cluster, and what names one that nobody knows is not sent to from anywhere.
func TestF88NetworkOfAnEndpointIsMissingOrAnother(t *testing.T) {
	const direct, gone = "[10.0.2.1@c2 DIRECT DIRECT]", "[10.0.2.1@c2 NONE UNKNOWN_NETWORK]"
	for name, c := range map[string]struct {
		label        federation.NetworkID
		from1, from2 string
	}{
		"its cluster's":    {"n2", "[10.0.2.1@c2 GATEWAY GATEWAY Network n2]", direct},
		"missing":          {"", "[10.0.2.1@c2 GATEWAY GATEWAY Network n2]", direct},
		"the caller's":     {"n1", direct, "[10.0.2.1@c2 DIRECT DIRECT]"}, // n1 has no gateway
		"a third":          {"n3", "[10.0.2.1@c2 GATEWAY GATEWAY Network n3]", "[10.0.2.1@c2 GATEWAY GATEWAY Network n3]"},
		"one nobody knows": {"n9", gone, gone},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.2")).network("n3", gatewaysAt("192.0.2.3"))
			w.say("c2", webKey, web(meshed("10.0.2.1", "n2", 0))) // before the label changes
			filled := c.label
			if filled == "" {
				filled = "n2" // registries fill in that of their cluster
			}
			w.say("c2", webKey, web(meshed("10.0.2.1", filled, 0)))
			if got := fmt.Sprint(explained(w, one(t), 80)); got != c.from1 {
				t.Errorf("from n1: %s, want %s", got, c.from1)
			}
			if got := fmt.Sprint(explained(w, inNetwork(t, "c2", "n2"), 80)); got != c.from2 {
				t.Errorf("from n2: %s, want %s", got, c.from2)
			}
		})
	}
}

func inNetwork(t *testing.T, cluster federation.ClusterID, network federation.NetworkID) envoy.Node {
	return parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": string(cluster), "NETWORK": string(network), "NAMESPACE": "shop", "IDENTITY_SOURCE": "ads"})
}

// TestF89ControlLinkAndDataPathAreApart: a hub that has lost a cluster
// takes nothing away, and a gateway that is not reached is excluded although the
// hub follows its cluster. Neither shows as the other.
func TestF89ControlLinkAndDataPathAreApart(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.1", "192.0.2.2")).
		say("c2", webKey, web(meshed("10.0.2.1", "n2", 0))).status("c2", federation.Ready)
	before := assignmentOf(t, w, one(t))
	w.status("c2", federation.Stale)
	if after := assignmentOf(t, w, one(t)); !proto.Equal(before, after) {
		t.Errorf("the link is lost, and the endpoints become %v", list(after))
	}
	if n, _ := w.snapshot.Network("n2"); len(n.Gateways[0].Verdicts)+len(n.Gateways[1].Verdicts) != 0 {
		t.Errorf("the lost link shows at gateways: %v", n.Gateways)
	}
	w.status("c2", federation.Ready).found(false, "192.0.2.1").found(true, "192.0.2.2")
	if got := fmt.Sprint(weights(t, w, one(t))); got != "map[192.0.2.2:15443:1]" {
		t.Errorf("a gateway is not reached, and the weights are %s", got)
	}
	if c, _ := w.snapshot.Cluster("c2"); c.Status.Phase != federation.Ready {
		t.Errorf("the gateway that is not reached shows at its cluster, which is %s", c.Status.Phase)
	}
}
