package envoy_test

import (
	"testing"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// ingress is a gateway of the namespace edge.
func ingress(t testing.TB, address string) envoy.Node {
	return parse(t, "router~"+address+"~gw.edge~edge.svc.cluster.local", map[string]any{
		"CLUSTER_ID": "c1", "NAMESPACE": "edge", "LABELS": map[string]any{"istio": "ingress"},
	})
}

// startGateway runs the gateway with what the hub would send it.
func startGateway(t *testing.T, network *testbed.Network, address string, s *federation.Snapshot) (*testbed.Namespace, *testbed.Envoy) {
	t.Helper()
	ns := testbed.NewNamespace(t, address)
	ns.Join(network, address)
	proxy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Config: sidecarConfig(t, ingress(t, address), s), Namespace: ns})
	proxy.WaitReady(time.Minute)
	return ns, proxy
}

const headlessRoute = oneGateway + `---
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [www.example.com]
  gateways: [edge/front]
  http: [{route: [{destination: {host: web.shop.svc.cluster.local}}]}]`

// A gateway balances over the endpoints of a headless service: nobody who calls a
// gateway chose one of them.
func TestR23GatewaysReachHeadlessServices(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	for _, address := range []string{"10.7.0.2", "10.7.0.3"} {
		ns, _ := pod(t, network, address, nil)
		testbed.StartEcho(t, testbed.EchoOptions{Name: address, Namespace: ns, HTTP: []int{8080}})
	}
	shard := web(at("10.7.0.2", 8080), at("10.7.0.3", 8080))
	shard.Resolution = federation.Passthrough
	s := newFixture().attach("c1", "").say("c1", webKey, shard).config(t, headlessRoute).snapshot
	startGateway(t, network, "10.7.0.8", s)
	caller, _ := pod(t, network, "10.7.0.9", nil)
	answered := map[string]bool{}
	for range 10 {
		r := caller.Get("http://10.7.0.8/", "Host", "www.example.com")
		if r.Err != nil || r.Status != 200 {
			t.Fatalf("the gateway answers %d %v %s", r.Status, r.Err, r.Body)
		}
		answered[r.Echo(t).Name] = true
	}
	if len(answered) != 2 {
		t.Errorf("requests are answered by %v, want both pods", answered)
	}
}

// A rule that has sidecars go where the caller wanted does not leave gateways
// without endpoints; sidecars are sent none.
func TestR23PassthroughRulesAreForSidecars(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.7.0.2", 8080))).config(t, `kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {simple: PASSTHROUGH}}}`)
	const name = "outbound|80||web.shop.svc.cluster.local"
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, ingress(t, "10.7.0.8"), w.snapshot), name)
	if len(list(a)) != 1 {
		t.Errorf("the gateway has the endpoints %q", list(a))
	}
	if names := namesOf(build(t, envoy.EndpointType, client(t), w.snapshot)); len(names) != 0 {
		t.Errorf("a sidecar is sent endpoints: %q", names)
	}
}
