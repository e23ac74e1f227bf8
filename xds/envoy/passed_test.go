package envoy_test

import (
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

const eastWest = `
kind: Gateway
metadata: {name: east-west, namespace: edge}
spec:
  selector: {istio: eastwest}
  servers:
  - {port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*"], tls: {mode: AUTO_PASSTHROUGH}}
`

func router(t testing.TB, mode string) envoy.Node {
	return parse(t, "router~10.0.0.9~gw.istio-system~istio-system.svc.cluster.local", map[string]any{
		"CLUSTER_ID": "c1", "ROUTER_MODE": mode, "LABELS": map[string]any{"istio": "eastwest"},
	})
}

func mesh(endpoints ...federation.Endpoint) []federation.Endpoint {
	for i := range endpoints {
		endpoints[i].TLSMode, endpoints[i].ServiceAccount = federation.MutualTLS, "shop/web"
	}
	return endpoints
}

func bySNI(all []builtResource) []string {
	return slices.DeleteFunc(namesOf(all), func(name string) bool { return !strings.HasPrefix(name, "outbound_.") })
}

func TestSeed61RoutersInSNIDNATModeHaveAClusterForEachName(t *testing.T) {
	w := newFixture().attach("c1", "").config(t,
		"kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, subsets: [{name: v1, labels: {version: v1}}]}")
	shard := &federation.Shard{}
	for i, protocol := range []federation.Protocol{
		federation.HTTP, federation.GRPC, federation.TCP, federation.TLS, federation.HTTPS,
		federation.Mongo, federation.UDP,
	} {
		shard.Ports = append(shard.Ports, federation.Port{Name: string(protocol), Number: uint16(80 + i), Protocol: protocol})
	}
	w.say("c1", webKey, shard)
	var want []string
	for _, port := range []string{"80", "81", "82", "83", "84", "85"} {
		want = append(want, "outbound_."+port+"_._.web.shop.svc.cluster.local", "outbound_."+port+"_.v1_.web.shop.svc.cluster.local")
	}
	slices.Sort(want)
	for mode, want := range map[string][]string{"sni-dnat": want, "standard": {}, "": {}} {
		for _, typ := range []envoy.Type{envoy.ClusterType, envoy.EndpointType} {
			if got := bySNI(build(t, typ, router(t, mode), w.snapshot)); !slices.Equal(got, want) {
				t.Errorf("mode %q, %s: the names are %q, want %q", mode, typ, got, want)
			}
		}
	}
	if got := bySNI(build(t, envoy.ClusterType, client(t), w.snapshot)); len(got) > 0 {
		t.Errorf("a sidecar has %q", got)
	}
}

func TestU02AGatewayPutsRoutersIntoSNIDNATMode(t *testing.T) {
	w := newFixture().attach("c1", "").config(t, eastWest)
	w.say("c1", webKey, &federation.Shard{Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}})
	node := func(namespace, label string) envoy.Node {
		return parse(t, "router~10.0.0.9~gw."+namespace+"~"+namespace+".svc.cluster.local",
			map[string]any{"CLUSTER_ID": "c1", "LABELS": map[string]any{"istio": label}})
	}
	for what, c := range map[string]struct {
		node   envoy.Node
		passes bool
	}{
		"selected": {node("istio-system", "eastwest"), true}, "not selected": {node("istio-system", "ingress"), false},
		"where gateways may not be": {node("shop", "eastwest"), false},
	} {
		if got := len(bySNI(build(t, envoy.ClusterType, c.node, w.snapshot))) > 0; got != c.passes {
			t.Errorf("a router that is %s passes connections on: %t", what, got)
		}
	}
}

func chainNames(t *testing.T, w *fixture) []string {
	t.Helper()
	var names []string
	for _, r := range build(t, envoy.ListenerType, router(t, "sni-dnat"), w.snapshot) {
		for _, chain := range r.message.(*listenerv3.Listener).GetFilterChains() {
			names = append(names, chain.GetName())
		}
	}
	return names
}

// A name that TLS could not carry is replaced by a digest, which the caller and
// the router compute alike; a service that takes that name for itself has it.
func TestLongNamesAreShortened(t *testing.T) {
	long := federation.ServiceKey{Hostname: federation.Hostname(strings.Repeat("long.", 46) + "svc.cluster.local"), Namespace: "shop"}
	w := newFixture().attach("c1", "").config(t, eastWest).say("c1", long, web(mesh(at("10.0.0.1", 8080))...))
	names := bySNI(build(t, envoy.ClusterType, router(t, "sni-dnat"), w.snapshot))
	if len(names) != 1 || len(names[0]) > 255 || !strings.HasSuffix(names[0], ".invalid") {
		t.Fatalf("the names are %q", names)
	}
	if got := chainNames(t, w); !slices.Equal(got, names) {
		t.Errorf("the chains are %q, want %q", got, names)
	}
	sidecar := parse(t, "sidecar~10.0.0.9~a.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "IDENTITY_SOURCE": "ads"})
	clusters := build(t, envoy.ClusterType, sidecar, w.snapshot)
	if !strings.Contains(string(render(t, clusters)), "sni: "+names[0]) {
		t.Errorf("a sidecar does not ask for %s", names[0])
	}
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, router(t, "sni-dnat"), w.snapshot), names[0])
	if got := list(a); !slices.Equal(got, []string{"10.0.0.1:8080 HEALTHY"}) {
		t.Errorf("behind the name are %q", got)
	}
	all := buildAll(t, router(t, "sni-dnat"), w.snapshot)
	if err := testbed.ValidateEnvoy(t, bootstrap(t, all)); err != nil {
		t.Error(err)
	}

	host := federation.Hostname(strings.TrimPrefix(names[0], "outbound_.80_._."))
	w.say("c1", federation.ServiceKey{Hostname: host, Namespace: "shop"}, web(mesh(at("10.0.0.2", 8080))...))
	a, reasons := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, router(t, "sni-dnat"), w.snapshot), names[0])
	if got := list(a); !slices.Equal(got, []string{"10.0.0.2:8080 HEALTHY"}) || len(reasons) != 1 ||
		reasons[0].Code != resource.ReasonSNIConflict || reasons[0].Service != long {
		t.Errorf("behind the name are %q, reasons %v", got, reasons)
	}
	for _, r := range build(t, envoy.ClusterType, sidecar, w.snapshot) {
		if r.name == "outbound|80||"+string(long.Hostname) && (len(r.reasons) != 1 || r.reasons[0].Code != resource.ReasonSNIConflict) {
			t.Errorf("the sidecar still sends to the service whose name is taken: %v", r.reasons)
		}
	}
}

// A change of anything that a name depends on brings the name, and the chain.
func TestTheListenerOfARouterDependsOnServicesAndRules(t *testing.T) {
	w := newFixture().attach("c1", "").config(t, eastWest)
	for _, r := range build(t, envoy.ListenerType, router(t, "sni-dnat"), w.snapshot) {
		t.Errorf("without services there is %s", r.name)
	}
	w.say("c1", webKey, web(mesh(at("10.0.0.1", 8080))...))
	found := build(t, envoy.ListenerType, router(t, "sni-dnat"), w.snapshot)
	if len(found) != 1 || !found[0].deps.AllSpecs {
		t.Fatalf("the listener depends on %+v", found)
	}
	if !found[0].deps.Sets.Has(federation.ObjectSet{
		Kind:      federation.Kind{Group: "networking.istio.io", Name: "DestinationRule"},
		Namespace: federation.AllNamespaces,
	}) {
		t.Error("the listener does not depend on DestinationRules")
	}
}

// A router passes connections on to the subsets of its own cluster's DestinationRules: their chains are those of
// the clusters that it has.
func TestARouterListensForSubsetsOfItsCluster(t *testing.T) {
	w := newFixture().attach("c1", "").config(t, eastWest).say("c1", webKey, web(mesh(at("10.0.0.1", 8080))...))
	o := &federation.Object{
		Key: federation.ObjectKey{Group: "networking.istio.io", Kind: "DestinationRule", Cluster: "c1", Namespace: "shop", Name: "web"},
		Spec: &networking.DestinationRule{
			Host:    string(webKey.Hostname),
			Subsets: []*networking.Subset{{Name: "v1", Labels: map[string]string{"version": "v1"}}},
		},
	}
	index(o)
	var e federation.Edit
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{o.Key: o}
	w.apply(e)
	clusters := bySNI(build(t, envoy.ClusterType, router(t, "sni-dnat"), w.snapshot))
	if len(clusters) != 2 {
		t.Errorf("the clusters are %q, want that of the service and that of its subset", clusters)
	}
	if chains := chainNames(t, w); !slices.Equal(chains, clusters) {
		t.Errorf("the router listens for %q and has the clusters %q", chains, clusters)
	}
}
