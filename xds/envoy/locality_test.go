package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// placed is a sidecar of c1 and n1 in eu/eu-1/a.
func placed(t testing.TB) envoy.Node {
	t.Helper()
	n, err := envoy.ParseNode(&corev3.Node{
		Id: "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local", Locality: &corev3.Locality{Region: "eu", Zone: "eu-1", SubZone: "a"},
		Metadata: fields(t, map[string]any{"CLUSTER_ID": "c1", "NETWORK": "n1", "NAMESPACE": "shop", "IDENTITY_SOURCE": "ads"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func located(address string, network federation.NetworkID, place string) federation.Endpoint {
	e := meshed(address, network, 0)
	e.Locality = locality(place)
	return e
}

// locality reads region/zone/sub-zone.
func locality(place string) federation.Locality {
	parts := strings.Split(place+"//", "/")
	return federation.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

// priorities are those of web, by address.
func priorities(t *testing.T, w *fixture, n envoy.Node) string {
	t.Helper()
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, n, w.snapshot), "outbound|80||web.shop.svc.cluster.local")
	var all []string
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			all = append(all, fmt.Sprintf("%d:%s", group.GetPriority(),
				netip.MustParseAddr(e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestEndpointsNearbyComeFirst(t *testing.T) {
	rule := func(policy string) string {
		return "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {" +
			policy + "}}"
	}
	mesh := func(spec string) string {
		return "kind: MeshSettings\nmetadata: {name: default}\nspec: {" + spec + "}"
	}
	const ejecting = "outlierDetection: {consecutive5xxErrors: 3}"
	const none = "0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:10.0.0.4 0:10.0.0.5 0:192.0.2.1 0:192.0.2.2"
	const all = "0:10.0.0.1 1:10.0.0.2 2:10.0.0.3 2:192.0.2.1 3:10.0.0.4 3:10.0.0.5 3:192.0.2.2"
	const toAsia = "0:10.0.0.1 1:10.0.0.2 2:10.0.0.3 2:192.0.2.1 3:10.0.0.5 3:192.0.2.2 4:10.0.0.4"
	for name, c := range map[string]struct{ config, want string }{
		"nobody asks":                {rule("loadBalancer: {simple: ROUND_ROBIN}"), none},
		"outlier detection":          {rule(ejecting), all},
		"settings of the mesh":       {mesh("localityLoadBalancing: {enabled: true}"), all},
		"turned off by the rule":     {rule(ejecting + ", loadBalancer: {localityLbSetting: {enabled: false}}"), none},
		"failover of the rule":       {rule(ejecting + ", loadBalancer: {localityLbSetting: {failover: [{from: eu, to: asia}]}}"), toAsia},
		"failover of the mesh":       {mesh("localityLoadBalancing: {enabled: true, failover: [{from: eu, to: asia}]}"), toAsia},
		"failover of another region": {rule(ejecting + ", loadBalancer: {localityLbSetting: {failover: [{from: us, to: asia}]}}"), all},
	} {
		t.Run(name, func(t *testing.T) {
			spec := gatewaysAt("192.0.2.1", "192.0.2.2")
			spec.Gateways[0].Locality, spec.Gateways[1].Locality = "eu/eu-2", "asia/asia-1"
			w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", spec).
				say("c1", webKey, web(located("10.0.0.1", "n1", "eu/eu-1/a"), located("10.0.0.2", "n1", "eu/eu-1/b"),
					located("10.0.0.3", "n1", "eu/eu-2/a"),
					located("10.0.0.4", "n1", "us/us-1"), located("10.0.0.5", "n1", "asia/asia-1"))).
				say("c2", webKey, web(located("10.0.0.1", "n2", "us/us-1"))).config(t, c.config)
			if got := priorities(t, w, placed(t)); got != c.want {
				t.Errorf("priorities are %s, want %s", got, c.want)
			}
			if got := priorities(t, w, one(t)); got != none {
				t.Errorf("of a proxy without locality, priorities are %s", got)
			}
		})
	}
}

// TestServicesAskForWhatIsNearby by trafficDistribution, which needs no other
// configuration; rules come first, and services beside it are as they were.
func TestServicesAskForWhatIsNearby(t *testing.T) {
	const none, near, toAsia = "0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:192.0.2.1", "0:10.0.0.1 1:192.0.2.1 2:10.0.0.2 2:10.0.0.3",
		"0:10.0.0.1 1:192.0.2.1 2:10.0.0.3 3:10.0.0.2"
	rule := func(setting string) string {
		return "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {localityLbSetting: {" + setting + "}}}}"
	}
	for name, c := range map[string]struct{ wish, config, want string }{
		"nothing":                  {"", "", none},
		"its first name":           {"PreferClose", "", near},
		"zone":                     {"PreferSameZone", "", near},
		"node, taken as zone":      {"PreferSameNode", "", near},
		"a word that nobody knows": {"PreferFar", "", none},
		"turned off by a rule":     {"PreferSameZone", rule("enabled: false"), none},
		"another region by a rule": {"PreferSameZone", rule("failover: [{from: eu, to: asia}]"), toAsia},
		"a rule about something else": {
			"PreferSameZone",
			"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {simple: RANDOM}}}", near,
		},
		"a rule alone asks for nobody": {"", rule("failover: [{from: eu, to: asia}]"), none},
	} {
		t.Run(name, func(t *testing.T) {
			spec := gatewaysAt("192.0.2.1")
			spec.Gateways[0].Locality = "eu/eu-2"
			w := newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", spec)
			local := web(located("10.0.0.1", "n1", "eu/eu-1/a"), located("10.0.0.2", "n1", "us/us-1"), located("10.0.0.3", "n1", "asia/asia-1"))
			local.TrafficDistribution = c.wish
			w.say("c1", webKey, local).say("c2", webKey, web(located("10.0.0.1", "n2", "us/us-1")))
			if c.config != "" {
				w.config(t, c.config)
			}
			if got := priorities(t, w, placed(t)); got != c.want {
				t.Errorf("priorities are %s, want %s", got, c.want)
			}
			if got := priorities(t, w, one(t)); got != none {
				t.Errorf("of a proxy without locality, priorities are %s", got)
			}
		})
	}
}

// TestPrioritiesHaveNoGap: gRPC refuses a gap, and Envoy waits for nobody there.
func TestPrioritiesHaveNoGap(t *testing.T) {
	w := newFixture().attach("c1", "n1").say("c1", webKey, web(located("10.0.0.3", "n1", "eu/eu-2"), located("10.0.0.4", "n1", "us/us-1"))).
		config(t, "kind: MeshSettings\nmetadata: {name: default}\nspec: {localityLoadBalancing: {enabled: true}}")
	if got := priorities(t, w, placed(t)); got != "0:10.0.0.3 1:10.0.0.4" {
		t.Errorf("priorities are %s", got)
	}
}

func TestClusterLocalHosts(t *testing.T) {
	settings := func(spec string) string {
		return "kind: MeshSettings\nmetadata: {name: default}\nspec: {" + spec + "}"
	}
	for name, c := range map[string]struct {
		host, config string
		local        bool
	}{
		"nothing":        {"web.shop.svc.cluster.local", "", false},
		"of kube-system": {"dns.kube-system.svc.cluster.local", "", true},
		"the API server": {"kubernetes.default.svc.cluster.local", "", true},
		"a namesake":     {"kubernetes.shop.svc.cluster.local", "", false},
		"by name":        {"web.shop.svc.cluster.local", settings("clusterLocalHosts: [web.shop.svc.cluster.local]"), true},
		"by wildcard":    {"web.shop.svc.cluster.local", settings("clusterLocalHosts: ['*.shop.svc.cluster.local']"), true},
		"exception": {
			"web.shop.svc.cluster.local",
			settings("clusterLocalHosts: ['*.shop.svc.cluster.local'], clusterLocalExceptions: [web.shop.svc.cluster.local]"), false,
		},
		"exception, default": {
			"dns.kube-system.svc.cluster.local",
			settings("clusterLocalExceptions: ['*.kube-system.svc.cluster.local']"), false,
		},
		"more than exception": {
			"web.shop.svc.cluster.local",
			settings("clusterLocalExceptions: ['*'], clusterLocalHosts: ['*.shop.svc.cluster.local']"), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := federation.ServiceKey{Hostname: federation.Hostname(c.host), Namespace: "shop"}
			w := newFixture().attach("c1", "n1").attach("c2", "n1").say("c1", k, web(meshed("10.0.0.1", "n1", 0))).say("c2",
				k, web(meshed("10.0.0.2", "n1", 0)))
			if c.config != "" {
				w.config(t, c.config)
			}
			a, reasons := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, one(t), w.snapshot), "outbound|80||"+c.host)
			want := "[10.0.0.1:8080 HEALTHY 10.0.0.2:8080 HEALTHY] []"
			if c.local {
				want = "[10.0.0.1:8080 HEALTHY] [CLUSTER_LOCAL 10.0.0.2]"
			}
			if got := fmt.Sprint(list(a), codes(reasons)); got != want {
				t.Errorf("the endpoints and reasons are %s, want %s", got, want)
			}
		})
	}
}

// TestProxiesElsewhereShareWhatDoesNotDependOnPlace: those of other localities and
// clusters have facets of their own for the rest alone.
func TestProxiesElsewhereShareWhatDoesNotDependOnPlace(t *testing.T) {
	w := newFixture().attach("c1", "n1").say("c1", webKey, web(meshed("10.0.0.1", "n1", 0)))
	holder := func(n envoy.Node) (found []envoy.Facet) {
		for _, f := range envoy.Facets(envoy.EndpointType, n, w.snapshot) {
			if len(envoy.Names(envoy.EndpointType, f, w.snapshot)) > 0 {
				found = append(found, f)
			}
		}
		return found
	}
	if a, b := holder(placed(t)), holder(one(t)); len(a) != 1 || !slices.Equal(a, b) {
		t.Errorf("the service is in %v and %v", a, b)
	}
	w.config(t,
		"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {}}}")
	if a, b := holder(placed(t)), holder(one(t)); slices.Equal(a, b) {
		t.Errorf("with outlier detection, the service is in %v for both", a)
	}
}

// weightsOf are the priorities and weights of web's localities, with the last part of the
// addresses there.
func weightsOf(t *testing.T, w *fixture, n envoy.Node) (string, []string) {
	t.Helper()
	a, reasons := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, n, w.snapshot),
		"outbound|80||web.shop.svc.cluster.local")
	var all []string
	for _, group := range a.GetEndpoints() {
		var last []string
		for _, e := range group.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
			last = append(last, address[strings.LastIndex(address, ".")+1:])
		}
		all = append(all, fmt.Sprintf("%d:%s=%d", group.GetPriority(), strings.Join(last, "+"), group.GetLoadBalancingWeight().GetValue()))
	}
	return strings.Join(all, " "), codes(reasons)
}

// spread is a fixture of two clusters and networks: 1 to 5 are endpoints of c1, 21 and 22
// the gateways of n2, behind which are an endpoint of weight 3 and one of weight 1.
func spread(t *testing.T) *fixture {
	t.Helper()
	spec := gatewaysAt("192.0.2.21", "192.0.2.22")
	spec.Gateways[0].Locality, spec.Gateways[1].Locality = "eu/eu-2", "asia/asia-1"
	labelled := func(e federation.Endpoint, labels map[string]string) federation.Endpoint {
		e.Labels = labels
		return e
	}
	v1, v2 := map[string]string{"version": "v1"}, map[string]string{"version": "v2", "tier": "gold"}
	heavy := labelled(located("10.0.0.11", "n2", "us/us-1"), v1)
	heavy.Weight = 3
	return newFixture().attach("c1", "n1").attach("c2", "n2").network("n2", spec).
		say("c1", webKey, web(labelled(located("10.0.0.1", "n1", "eu/eu-1/a"), v1), labelled(located("10.0.0.2", "n1", "eu/eu-1/b"), v2),
			labelled(located("10.0.0.3", "n1", "eu/eu-2/a"), v1),
			labelled(located("10.0.0.4", "n1", "us/us-1"), v2), located("10.0.0.5", "n1", "asia/asia-1"))).
		say("c2", webKey, web(heavy, labelled(located("10.0.0.12", "n2", "us/us-1"), v1)))
}

func TestK20RequestsAreDistributedOverLocalities(t *testing.T) {
	rule := func(balancer, to string) string {
		return "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {" + balancer + "localityLbSetting: {" + to + "}}}}"
	}
	const untouched = "0:5+22=6 0:1=2 0:2=2 0:21=4 0:3=2 0:4=2"
	for name, c := range map[string]struct{ config, want, reasons string }{
		"to regions": {
			rule("", "distribute: [{from: eu/*, to: {eu: 80, us: 20}}]"), "0:1=16000 0:2=16000 0:21=32000 0:3=16000 0:4=20000",
			"[NO_SHARE 10.0.0.5]",
		},
		"to zones, gateways by their own locality": {
			rule("", `distribute: [{from: eu/eu-1/*, to: {"eu/eu-2": 70, "asia/*": 30}}]`), "0:5+22=30000 0:21=46666 0:3=23333",
			"[NO_SHARE 10.0.0.1 NO_SHARE 10.0.0.2 NO_SHARE 10.0.0.4]",
		},
		"without the locality of any gateway": {
			rule("", `distribute: [{from: "*", to: {"us": 100}}]`), "0:4=100000",
			"[NO_SHARE 10.0.0.1 NO_SHARE 10.0.0.11 NO_SHARE 10.0.0.12 NO_SHARE 10.0.0.2 NO_SHARE 10.0.0.3 NO_SHARE 10.0.0.5]",
		},
		"the first that matches": {
			rule("", `distribute: [{from: us, to: {us: 100}}, {from: eu/eu-1/a, to: {asia: 100}}, {from: eu, to: {eu: 100}}]`), "0:5+22=100000", "",
		},
		"none matches":    {rule("", "distribute: [{from: us, to: {us: 100}}]"), untouched, "[]"},
		"turned off":      {rule("", "enabled: false, distribute: [{from: eu, to: {us: 100}}]"), untouched, "[]"},
		"nobody is there": {rule("", "distribute: [{from: eu, to: {africa: 100}}]"), "", ""},
		"the most exact one": {
			rule("", `distribute: [{from: eu, to: {"*": 10, eu: 20, eu/eu-1: 30, eu/eu-1/a: 40}}]`),
			"0:5+22=7500 0:1=40000 0:2=30000 0:21=13333 0:3=6666 0:4=2500", "",
		},
		"least request": {
			rule("simple: LEAST_REQUEST, ", "distribute: [{from: eu, to: {eu: 80, us: 20}}]"),
			"0:1=16000 0:2=16000 0:3=16000 0:21=32000 0:4=20000", "",
		},
		"the settings of the mesh": {
			"kind: MeshSettings\nmetadata: {name: default}\nspec: {localityLoadBalancing: {distribute: [{from: eu, to: {eu: 80, us: 20}}]}}",
			"0:1=16000 0:2=16000 0:21=32000 0:3=16000 0:4=20000", "[NO_SHARE 10.0.0.5]",
		},
		"odd shares": {
			rule("", `distribute: [{from: "", to: {eu: 1}}, {from: eu, to: {us: 4294967295, asia: 0, "": 7, "a/b/c/d": 1}}]`),
			"0:4=100000", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := spread(t).config(t, c.config)
			got, reasons := weightsOf(t, w, placed(t))
			slices.Sort(reasons)
			if got != c.want {
				t.Errorf("weights are\n%s, want\n%s", got, c.want)
			}
			if c.reasons != "" && fmt.Sprint(reasons) != c.reasons {
				t.Errorf("the reasons are %v, want %s", reasons, c.reasons)
			}
		})
	}
}

func TestK20EndpointsAreOrderedByLabels(t *testing.T) {
	const all = "0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:10.0.0.4 0:10.0.0.5 0:192.0.2.21 0:192.0.2.22"
	for name, c := range map[string]struct{ labels, want string }{
		"topology": {
			"topology.istio.io/network, topology.kubernetes.io/region, topology.kubernetes.io/zone, topology.istio.io/subzone",
			"0:10.0.0.1 1:10.0.0.2 2:10.0.0.3 3:10.0.0.4 3:10.0.0.5 4:192.0.2.21 4:192.0.2.22",
		},
		"the proxy's own cluster": {
			"topology.istio.io/cluster",
			"0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:10.0.0.4 0:10.0.0.5 1:192.0.2.21 1:192.0.2.22",
		},
		"another cluster": {
			"topology.istio.io/cluster=c2",
			"0:192.0.2.21 0:192.0.2.22 1:10.0.0.1 1:10.0.0.2 1:10.0.0.3 1:10.0.0.4 1:10.0.0.5",
		},
		"values": {
			"version=v1, topology.istio.io/cluster=c1",
			"0:10.0.0.1 0:10.0.0.3 1:192.0.2.21 1:192.0.2.22 2:10.0.0.2 2:10.0.0.4 2:10.0.0.5",
		},
		"the proxy's own label":       {"version", "0:10.0.0.2 0:10.0.0.4 1:10.0.0.1 1:10.0.0.3 1:10.0.0.5 1:192.0.2.21 1:192.0.2.22"},
		"a label that nobody has":     {"track", all},
		"the second counts not alone": {"track=x, version=v1", all},
		"an empty list has no effect": {"", "0:10.0.0.1 1:10.0.0.2 2:10.0.0.3 2:192.0.2.21 3:10.0.0.4 3:10.0.0.5 3:192.0.2.22"},
		"later labels are sub-orders": {
			"topology.kubernetes.io/region=eu, tier=gold",
			"0:10.0.0.2 1:10.0.0.1 1:10.0.0.3 1:192.0.2.21 2:10.0.0.4 2:10.0.0.5 2:192.0.2.22",
		},
		"a label that the proxy lacks": {"tier", "0:10.0.0.1 0:10.0.0.3 0:10.0.0.5 0:192.0.2.21 0:192.0.2.22 1:10.0.0.2 1:10.0.0.4"},
	} {
		for from, config := range map[string]string{
			"rule": "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failoverPriority: [" + c.labels + "]}}}}",
			"mesh": "kind: MeshSettings\nmetadata: {name: default}\nspec: {localityLoadBalancing: {enabled: true, failoverPriority: [" +
				c.labels + "]}}",
		} {
			t.Run(name+"/"+from, func(t *testing.T) {
				n := placed(t)
				n.Labels = map[string]string{"version": "v2", "app": "client"}
				if got := priorities(t, spread(t).config(t, config), n); got != c.want {
					t.Errorf("priorities are\n%s, want\n%s", got, c.want)
				}
			})
		}
	}
	t.Run("nothing is ejected", func(t *testing.T) {
		w := spread(t).config(t,
			"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {localityLbSetting: {failoverPriority: [version=v1]}}}}")
		if got := priorities(t, w, placed(t)); got != all {
			t.Errorf("priorities are %s", got)
		}
	})
	t.Run("regions within labels", func(t *testing.T) {
		w := spread(t).config(t,
			"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failoverPriority: [version=v1], failover: [{from: eu, to: us}]}}}}")
		if got := priorities(t, w, placed(t)); got != "0:10.0.0.1 1:10.0.0.3 1:192.0.2.21 2:192.0.2.22 3:10.0.0.2 4:10.0.0.4 5:10.0.0.5" {
			t.Errorf("priorities are %s", got)
		}
	})
}

// TestK55RegionsHavePriorities: with zoneAwareLbSetting, endpoints are ordered by regions within
// the same labels, and not by zones, whether or not they are ejected.
func TestK55RegionsHavePriorities(t *testing.T) {
	const regions = "0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:192.0.2.21 1:10.0.0.4 1:10.0.0.5 1:192.0.2.22"
	const all = "0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:10.0.0.4 0:10.0.0.5 0:192.0.2.21 0:192.0.2.22"
	for name, c := range map[string]struct{ set, want string }{
		"by default": {"{}", regions},
		"turned on":  {"{enabled: true}", regions},
		"turned off": {"{enabled: false, failover: [{from: eu, to: us}]}", all},
		"which takes over": {
			"{failover: [{from: us, to: asia}, {from: eu, to: us}, {from: eu, to: asia}]}",
			"0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:192.0.2.21 1:10.0.0.4 2:10.0.0.5 2:192.0.2.22",
		},
		"within labels": {
			"{failoverPriority: [topology.istio.io/cluster=c1]}",
			"0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 1:10.0.0.4 1:10.0.0.5 2:192.0.2.21 3:192.0.2.22",
		},
		"the proxy's own labels": {
			"{failoverPriority: [version]}",
			"0:10.0.0.2 1:10.0.0.4 2:10.0.0.1 2:10.0.0.3 2:192.0.2.21 3:10.0.0.5 3:192.0.2.22",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, outliers := range []string{"", "outlierDetection: {}, "} {
				w := spread(t).config(t,
					"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {"+outliers+
						"loadBalancer: {zoneAwareLbSetting: "+c.set+"}}}")
				n := placed(t)
				n.Labels = map[string]string{"version": "v2"}
				if got := priorities(t, w, n); got != c.want {
					t.Errorf("priorities are\n%s, want\n%s", got, c.want)
				}
			}
		})
	}
}

// A rule's setting replaces that of the mesh as a whole, as in Istio.
func TestK20ARuleReplacesTheSettingsOfTheMesh(t *testing.T) {
	mesh := "kind: MeshSettings\nmetadata: {name: default}\nspec: {localityLoadBalancing: {enabled: true, failover: [{from: eu, to: asia}], distribute: [{from: eu, to: {us: 100}}]}}"
	rule := "\n---\nkind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {localityLbSetting: {enabled: true}}}}"
	if got := priorities(t, spread(t).config(t, mesh+rule),
		placed(t)); got != "0:10.0.0.1 1:10.0.0.2 2:10.0.0.3 2:192.0.2.21 3:10.0.0.4 3:10.0.0.5 3:192.0.2.22" {
		t.Errorf("priorities are %s", got)
	}
}

// Only labels by which endpoints are ordered tell proxies apart for endpoints, and only
// where such rules are.
func TestK20ProxiesShareEndpointsUnlessRulesOrderThem(t *testing.T) {
	facets := func(w *fixture, version string) []envoy.Facet {
		n := placed(t)
		n.Labels = map[string]string{"app": version, "version": version}
		return envoy.Facets(envoy.EndpointType, n, w.snapshot)
	}
	w := spread(t).config(t, `kind: Sidecar
metadata: {name: s, namespace: shop}
spec: {workloadSelector: {labels: {app: other}}}
---
kind: DestinationRule
metadata: {name: web, namespace: other}
spec: {host: web.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failoverPriority: [app=x, topology.istio.io/network]}}}}`)
	if a, b := facets(w, "v1"), facets(w, "v2"); !slices.Equal(a, b) {
		t.Errorf("no rule orders by a label of proxies, but they have the facets\n%v and\n%v", a, b)
	}
	w.config(t,
		"kind: DestinationRule\nmetadata: {name: web, namespace: third}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failoverPriority: [version]}}}}")
	if a, b := facets(w, "v1"), facets(w, "v2"); slices.Equal(a, b) {
		t.Errorf("a rule orders by the label, but proxies with two values of it share %v", a)
	}
}
