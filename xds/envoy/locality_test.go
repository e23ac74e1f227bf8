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
func priorities(t *testing.T, w *world, n envoy.Node) string {
	t.Helper()
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, n, w.snapshot), "outbound|80||web.shop.svc.cluster.local")
	var all []string
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			all = append(all, fmt.Sprintf("%d:%s", group.GetPriority(), netip.MustParseAddr(e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestEndpointsNearbyComeFirst(t *testing.T) {
	rule := func(policy string) string {
		return "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {" + policy + "}}"
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
			w := newWorld().attach("c1", "n1").attach("c2", "n2").network("n2", spec).
				say("c1", webKey, web(located("10.0.0.1", "n1", "eu/eu-1/a"), located("10.0.0.2", "n1", "eu/eu-1/b"), located("10.0.0.3", "n1", "eu/eu-2/a"),
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
	const none, near, toAsia = "0:10.0.0.1 0:10.0.0.2 0:10.0.0.3 0:192.0.2.1", "0:10.0.0.1 1:192.0.2.1 2:10.0.0.2 2:10.0.0.3", "0:10.0.0.1 1:192.0.2.1 2:10.0.0.3 3:10.0.0.2"
	rule := func(setting string) string {
		return "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {localityLbSetting: {" + setting + "}}}}"
	}
	for name, c := range map[string]struct{ wish, config, want string }{
		"nothing":                      {"", "", none},
		"its first name":               {"PreferClose", "", near},
		"zone":                         {"PreferSameZone", "", near},
		"node, taken as zone":          {"PreferSameNode", "", near},
		"a word that nobody knows":     {"PreferFar", "", none},
		"turned off by a rule":         {"PreferSameZone", rule("enabled: false"), none},
		"another region by a rule":     {"PreferSameZone", rule("failover: [{from: eu, to: asia}]"), toAsia},
		"a rule about something else":  {"PreferSameZone", "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {simple: RANDOM}}}", near},
		"a rule alone asks for nobody": {"", rule("failover: [{from: eu, to: asia}]"), none},
	} {
		t.Run(name, func(t *testing.T) {
			spec := gatewaysAt("192.0.2.1")
			spec.Gateways[0].Locality = "eu/eu-2"
			w := newWorld().attach("c1", "n1").attach("c2", "n2").network("n2", spec)
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
	w := newWorld().attach("c1", "n1").say("c1", webKey, web(located("10.0.0.3", "n1", "eu/eu-2"), located("10.0.0.4", "n1", "us/us-1"))).
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
		"nothing":             {"web.shop.svc.cluster.local", "", false},
		"of kube-system":      {"dns.kube-system.svc.cluster.local", "", true},
		"the API server":      {"kubernetes.default.svc.cluster.local", "", true},
		"a namesake":          {"kubernetes.shop.svc.cluster.local", "", false},
		"by name":             {"web.shop.svc.cluster.local", settings("clusterLocalHosts: [web.shop.svc.cluster.local]"), true},
		"by wildcard":         {"web.shop.svc.cluster.local", settings("clusterLocalHosts: ['*.shop.svc.cluster.local']"), true},
		"exception":           {"web.shop.svc.cluster.local", settings("clusterLocalHosts: ['*.shop.svc.cluster.local'], clusterLocalExceptions: [web.shop.svc.cluster.local]"), false},
		"exception, default":  {"dns.kube-system.svc.cluster.local", settings("clusterLocalExceptions: ['*.kube-system.svc.cluster.local']"), false},
		"more than exception": {"web.shop.svc.cluster.local", settings("clusterLocalExceptions: ['*'], clusterLocalHosts: ['*.shop.svc.cluster.local']"), true},
	} {
		t.Run(name, func(t *testing.T) {
			k := federation.ServiceKey{Hostname: federation.Hostname(c.host), Namespace: "shop"}
			w := newWorld().attach("c1", "n1").attach("c2", "n1").say("c1", k, web(meshed("10.0.0.1", "n1", 0))).say("c2", k, web(meshed("10.0.0.2", "n1", 0)))
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
	w := newWorld().attach("c1", "n1").say("c1", webKey, web(meshed("10.0.0.1", "n1", 0)))
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
	w.config(t, "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {}}}")
	if a, b := holder(placed(t)), holder(one(t)); slices.Equal(a, b) {
		t.Errorf("with outlier detection, the service is in %v for both", a)
	}
}
