package envoy_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// network applies a Network object.
func (w *fixture) network(id federation.NetworkID, spec federation.NetworkObject) *fixture {
	o := &federation.Object{
		Key:    federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: string(id)},
		Digest: fmt.Sprintf("%+v", spec), Spec: &spec,
	}
	return w.apply(federation.Edit{Objects: federation.Delta[federation.ObjectKey,
		*federation.Object]{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}})
}

func gatewaysAt(addresses ...string) federation.NetworkObject {
	var spec federation.NetworkObject
	for _, a := range addresses {
		spec.Gateways = append(spec.Gateways, federation.NetworkGateway{Address: a})
	}
	return spec
}

// meshed is an endpoint of the network that takes mutual TLS.
func meshed(address string, network federation.NetworkID, weight uint32) federation.Endpoint {
	e := at(address, 8080)
	e.Network, e.Weight, e.TLSMode = network, weight, federation.MutualTLS
	return e
}

// one is a sidecar of the mesh in network n1.
func one(t testing.TB) envoy.Node {
	return parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "NETWORK": "n1", "NAMESPACE": "shop", "IDENTITY_SOURCE": "ads"})
}

// weights are those of an assignment by address, as shares of the whole.
func weights(t testing.TB, w *fixture, n envoy.Node) map[string]uint32 {
	t.Helper()
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, n, w.snapshot), "outbound|80||web.shop.svc.cluster.local")
	found := map[string]uint32{}
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			at := e.GetEndpoint().GetAddress().GetSocketAddress()
			address := fmt.Sprintf("%s:%d", at.GetAddress(), at.GetPortValue())
			if _, twice := found[address]; twice {
				t.Errorf("%s is there twice", address)
			}
			found[address] = max(e.GetLoadBalancingWeight().GetValue(), 1)
		}
	}
	return found
}

func TestSeed59OtherNetworksAreTheirGateways(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.1")).
		say("c1", webKey, web(meshed("10.0.0.1", "n1", 0), meshed("10.0.0.2", "n1", 0))).
		say("c2", webKey, web(meshed("10.0.0.1", "n2", 0), meshed("10.0.0.2", "n2", 0), meshed("10.0.0.3", "n2", 0)))
	got := fmt.Sprint(weights(t, w, one(t)))
	if want := "map[10.0.0.1:8080:1 10.0.0.2:8080:1 192.0.2.1:15443:3]"; got != want {
		t.Errorf("weights are %s, want %s", got, want)
	}
}

func TestSeed60NetworksWithoutGatewayAreSentToDirectly(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n2").
		say("c1", webKey, web(meshed("10.0.0.1", "n1", 0))).say("c2", webKey, web(meshed("10.0.2.1", "n2", 0)))
	if got, want := fmt.Sprint(weights(t, w, one(t))), "map[10.0.0.1:8080:1 10.0.2.1:8080:1]"; got != want {
		t.Errorf("weights are %s, want %s", got, want)
	}
}

// TestWhatIsBehindAGateway: who is excluded, and why.
func TestWhatIsBehindAGateway(t *testing.T) {
	plain, sick, elsewhere := meshed("10.0.2.2", "n2", 0), meshed("10.0.2.3", "n2", 0), meshed("10.0.2.4", "nowhere", 0)
	plain.TLSMode, sick.Health = "disabled", federation.Unhealthy
	base := func() *fixture {
		return newFixture().attach("c1", "n1").attach("c2", "n2").say("c1", webKey, web(meshed("10.0.0.1", "n1", 0)))
	}
	only := func(from ...federation.NetworkID) federation.NetworkObject {
		spec := gatewaysAt("192.0.2.1")
		spec.Gateways[0].From = from
		return spec
	}
	for name, c := range map[string]struct {
		fixture *fixture
		want    string
		reasons []string
	}{
		"no mutual TLS": {
			base().network("n2", only()).say("c2", webKey, web(plain)), "map[10.0.0.1:8080:1]",
			[]string{"NO_MUTUAL_TLS 10.0.2.2"},
		},
		"unhealthy": {
			base().network("n2", only()).say("c2", webKey, web(sick, meshed("10.0.2.1", "n2", 7))),
			"map[10.0.0.1:8080:1 192.0.2.1:15443:7]",
			[]string{"UNHEALTHY 10.0.2.3"},
		},
		"unknown network": {base().say("c2", webKey, web(elsewhere)), "map[10.0.0.1:8080:1]", []string{"UNKNOWN_NETWORK 10.0.2.4"}},
		"not from here": {
			base().network("n2", only("n3")).say("c2", webKey, web(meshed("10.0.2.1", "n2", 0))),
			"map[10.0.0.1:8080:1]",
			[]string{"NO_GATEWAY_FOR_NETWORK 10.0.2.1"},
		},
		"from here": {
			base().network("n2", only("n1", "n3")).say("c2", webKey, web(meshed("10.0.2.1", "n2", 0))),
			"map[10.0.0.1:8080:1 192.0.2.1:15443:1]", nil,
		},
		"no usable address": {
			base().network("n2", gatewaysAt("169.254.169.254")).say("c2", webKey, web(meshed("10.0.2.1", "n2", 0))),
			"map[10.0.0.1:8080:1]",
			[]string{"NO_GATEWAY_ADDRESS 10.0.2.1"},
		},
		"one gateway, two networks": {base().attach("c3", "n3").network("n2", only()).network("n3", only()).say("c2", webKey,
			web(meshed("10.0.2.1", "n2", 2))).say("c3", webKey, web(meshed("10.0.2.1", "n3", 3))), "map[10.0.0.1:8080:1 192.0.2.1:15443:5]", nil},
		"the same pod twice": {
			base().attach("c3", "n2").network("n2", only()).say("c2", webKey,
				web(meshed("10.0.2.1", "n2", 2))).say("c3", webKey, web(meshed("10.0.2.1", "n2", 3))), "map[10.0.0.1:8080:1 192.0.2.1:15443:2]",
			[]string{"DUPLICATE_ADDRESS 10.0.2.1"},
		},
		"weights beyond Envoy's": {
			base().network("n2", gatewaysAt("192.0.2.1", "192.0.2.2", "192.0.2.3")).say("c2", webKey,
				web(meshed("10.0.2.1", "n2", 1<<32-1))),
			"map[10.0.0.1:8080:1 192.0.2.1:15443:1073741823 192.0.2.2:15443:1073741823 192.0.2.3:15443:1073741823]", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(weights(t, c.fixture, one(t))); got != c.want {
				t.Errorf("weights are %s, want %s", got, c.want)
			}
			_, reasons := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, one(t), c.fixture.snapshot),
				"outbound|80||web.shop.svc.cluster.local")
			if got := codes(reasons); !slices.Equal(got, c.reasons) {
				t.Errorf("reasons are %q, want %q", got, c.reasons)
			}
		})
	}
}

// TestProxiesWithoutIdentitySendNothingToGateways: plain text never goes there.
func TestProxiesWithoutIdentitySendNothingToGateways(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.1")).
		say("c1", webKey, web(meshed("10.0.0.1", "n1", 0))).say("c2", webKey, web(meshed("10.0.2.1", "n2", 0)))
	a, reasons := webEndpoints(t, w)
	if got := fmt.Sprint(list(a), codes(reasons)); got != "[10.0.0.1:8080 HEALTHY] [NO_IDENTITY 10.0.2.1]" {
		t.Errorf("the endpoints and reasons are %s", got)
	}
	w.config(t,
		"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {tls: {mode: DISABLE}}}")
	a, reasons = find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, one(t), w.snapshot),
		"outbound|80||web.shop.svc.cluster.local")
	if got := fmt.Sprint(list(a), codes(reasons),
		reasons[0].Cause); got != "[10.0.0.1:8080 HEALTHY] [MUTUAL_TLS_OFF 10.0.2.1] DestinationRule.networking.istio.io shop/web" {
		t.Errorf("with a rule against mutual TLS, the endpoints and reasons are %s", got)
	}
}

// drawnNetwork is a network of the property below.
type drawnNetwork struct {
	id       federation.NetworkID
	gateways []string
	weights  []uint32
}

func drawNetworks(t *rapid.T) []drawnNetwork {
	all := []drawnNetwork{{id: "n1"}, {id: "n2"}, {id: "n3"}, {id: "n4"}}
	for i := range all {
		for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
			all[i].weights = append(all[i].weights, rapid.Uint32Range(1, 1000).Draw(t, "weight"))
		}
		for range rapid.IntRange(0, 4).Draw(t, "gateways") {
			g := fmt.Sprintf("192.0.2.%d", rapid.IntRange(1, 9).Draw(t, "gateway"))
			if i > 0 && !slices.Contains(all[i].gateways, g) {
				all[i].gateways = append(all[i].gateways, g)
			}
		}
	}
	return all
}

// edits says what the networks hold, each network its own edit.
func (n drawnNetwork) tell(w *fixture, i int) {
	cluster := federation.ClusterID("c" + string(n.id[1:]))
	var endpoints []federation.Endpoint
	for j, weight := range n.weights {
		e := meshed(fmt.Sprintf("10.0.%d.%d", i, j), n.id, weight)
		e.Locality.Zone = fmt.Sprint(j % 3)
		endpoints = append(endpoints, e)
	}
	w.attach(cluster, n.id).say(cluster, webKey, web(endpoints...)).network(n.id, gatewaysAt(n.gateways...))
}

// TestPropertySharesAreExact: a proxy in n1 sends to each endpoint, and to
// each gateway, exactly its part: of every network what its endpoints weigh,
// through its gateways alike, each address once, in whatever order all came.
func TestPropertySharesAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		networks := drawNetworks(rt)
		total := new(big.Rat)
		want := map[string]*big.Rat{}
		add := func(address string, part *big.Rat) {
			if want[address] == nil {
				want[address] = new(big.Rat)
			}
			want[address].Add(want[address], part)
			total.Add(total, part)
		}
		for i, n := range networks {
			for j, weight := range n.weights {
				if len(n.gateways) == 0 {
					add(fmt.Sprintf("10.0.%d.%d:8080", i, j), new(big.Rat).SetInt64(int64(weight)))
				}
				for _, g := range n.gateways {
					add(g+":15443", big.NewRat(int64(weight), int64(len(n.gateways))))
				}
			}
		}
		w, other := newFixture(), newFixture()
		for i, n := range networks {
			n.tell(w, i)
		}
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3}).Draw(rt, "order") {
			networks[i].tell(other, i)
		}
		got := weights(t, w, one(t))
		if again := weights(t, other, one(t)); fmt.Sprint(got) != fmt.Sprint(again) {
			rt.Fatalf("in another order the weights are %v, not %v", again, got)
		}
		sum := new(big.Rat)
		for _, weight := range got {
			sum.Add(sum, new(big.Rat).SetInt64(int64(weight)))
		}
		if len(got) != len(want) {
			rt.Fatalf("%v, want %v", got, want)
		}
		for address, part := range want {
			share := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(got[address])), sum)
			if share.Cmp(new(big.Rat).Quo(part, total)) != 0 {
				rt.Errorf("%s has the share %s, want %s of %s", address, share, part, total)
			}
		}
	})
}

// TestWeightsOfPoliciesThatIgnoreThem: with them localities carry the weights,
// one for each gateway.
func TestWeightsOfPoliciesThatIgnoreThem(t *testing.T) {
	for _, policy := range []string{"LEAST_REQUEST", "RANDOM"} {
		w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", gatewaysAt("192.0.2.1", "192.0.2.2")).
			say("c1", webKey, web(meshed("10.0.0.1", "n1", 1), meshed("10.0.0.2", "n1", 2))).say("c2", webKey, web(meshed("10.0.0.1", "n2", 4))).
			config(t,
				"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {simple: "+policy+"}}}")
		resources := build(t, envoy.EndpointType, one(t), w.snapshot)
		a, _ := find[*endpointv3.ClusterLoadAssignment](t, resources, "outbound|80||web.shop.svc.cluster.local")
		var got []string
		for _, group := range a.GetEndpoints() {
			got = append(got, fmt.Sprintf("%s: %d of %d", group.GetLocality().GetSubZone(), group.GetLoadBalancingWeight().GetValue(),
				len(group.GetLbEndpoints())))
		}
		want := "~gateway-192.0.2.1:15443: 4 of 1, ~gateway-192.0.2.2:15443: 4 of 1, ~weight-2: 2 of 1, ~weight-4: 4 of 1"
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: localities are %q, want %q", policy, got, want)
		}
	}
}

// TestSeed66OneClustersUpdateLeavesTheOthers: endpoints of two clusters behind one
// gateway are updated apart.
func TestSeed66OneClustersUpdateLeavesTheOthers(t *testing.T) {
	w := newFixture().attach("c1", "n1").attach("c2", "n2").attach("c3", "n2").network("n2", gatewaysAt("192.0.2.1")).
		say("c2", webKey, web(meshed("10.0.2.1", "n2", 2))).say("c3", webKey, web(meshed("10.0.3.1", "n2", 3)))
	w.say("c2", webKey, web())
	if got, want := fmt.Sprint(weights(t, w, one(t))), "map[192.0.2.1:15443:3]"; got != want {
		t.Errorf("weights are %s, want %s", got, want)
	}
}

// TestProxyIsWhereNetworksPutIt: a proxy at an address of a Network's range sees
// that network as its own.
func TestProxyIsWhereNetworksPutIt(t *testing.T) {
	spec := gatewaysAt("192.0.2.1")
	spec.CIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	w := newFixture().attach("c1", "n1").network("n2", spec).say("c1", webKey, web(meshed("10.0.0.1", "n1", 1), meshed("10.0.1.1", "n1", 1)))
	if got, want := fmt.Sprint(weights(t, w, one(t))), "map[10.0.0.1:8080:1 10.0.1.1:8080:1]"; got != want {
		t.Errorf("weights are %s, want %s", got, want)
	}
}
