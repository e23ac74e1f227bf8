package envoy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/xds/envoy"
)

const ownRoute = oneGateway + `---
kind: VirtualService
metadata: {name: web, namespace: edge}
spec:
  hosts: [www.example.com]
  gateways: [edge/front]
  http:
  - match: [{port: 80}]
    directResponse: {status: 200, body: {string: port 80}}`

// gatewayService is a Service of the namespace that selects the gateway and sends
// port 80 to its target port.
func gatewayService(namespace, address string, target uint16) (federation.ServiceKey, *federation.Shard) {
	return federation.ServiceKey{Hostname: federation.Hostname("ingress." + namespace + ".svc.cluster.local"), Namespace: namespace},
		web(at(address, target))
}

func listenersOf(t *testing.T, s *federation.Snapshot) []string {
	t.Helper()
	return namesOf(build(t, envoy.ListenerType, ingress(t, "10.7.0.8"), s))
}

// A gateway listens where the Service that selects it sends what comes for the port
// of the Gateway, as Istio's stock profile has it: 80 to 8080. Matches on the port
// mean that of the Gateway.
func TestR31GatewaysListenAtTargetPorts(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	key, shard := gatewayService("edge", "10.7.0.8", 8080)
	s := newFixture().attach("c1", "").say("c1", key, shard).config(t, ownRoute).snapshot
	startGateway(t, network, "10.7.0.8", s)
	caller, _ := pod(t, network, "10.7.0.9", nil)
	if r := caller.Get("http://10.7.0.8:8080/", "Host", "www.example.com"); r.Err != nil || string(r.Body) != "port 80" {
		t.Errorf("at its target port the gateway answers %d %q %v", r.Status, r.Body, r.Err)
	}
	if r := caller.Get("http://10.7.0.8/", "Host", "www.example.com"); r.Err == nil {
		t.Errorf("at the port of the Service, where nothing arrives, it answers %d", r.Status)
	}
}

func TestR31WhichServicesMoveAGatewaysPorts(t *testing.T) {
	const port, target = "0.0.0.0_80", "0.0.0.0_8080"
	own := func(change func(*federation.ServiceKey, *federation.Shard)) *federation.Snapshot {
		key, shard := gatewayService("edge", "10.7.0.8", 8080)
		change(&key, shard)
		return newFixture().attach("c1", "").attach("c2", "").say("c1", key, shard).config(t, ownRoute).snapshot
	}
	for name, c := range map[string]struct {
		snapshot *federation.Snapshot
		want     string
	}{
		"its own":                  {own(func(*federation.ServiceKey, *federation.Shard) {}), target},
		"one of another namespace": {own(func(k *federation.ServiceKey, _ *federation.Shard) { k.Namespace = "tenant" }), port},
		"one that selects another pod": {own(func(_ *federation.ServiceKey, s *federation.Shard) {
			s.Endpoints[0].Address = at("10.7.0.7", 8080).Address
		}), port},
		"one with the port itself": {own(func(_ *federation.ServiceKey, s *federation.Shard) { s.Endpoints[0].Ports[0].Number = 80 }), port},
		"one with other ports":     {own(func(_ *federation.ServiceKey, s *federation.Shard) { s.Ports[0].Number = 81 }), port},
		"one that says not to": {own(func(_ *federation.ServiceKey, s *federation.Shard) {
			s.Labels = map[string]string{"experimental.istio.io/disable-gateway-port-translation": "true"}
		}), port},
		"none": {newFixture().attach("c1", "").config(t, ownRoute).snapshot, port},
	} {
		if got := listenersOf(t, c.snapshot); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: it listens at %q, want %s", name, got, c.want)
		}
	}
}

// TestK86GatewaysServePortsOfSidecars: a real gateway also serves ports of sidecars, since nothing is captured there.
// Beside Istio's agent it serves all but those of the agent.
func TestK86GatewaysServePortsOfSidecars(t *testing.T) {
	ports := []int{80, 15001, 15006, 15008, 15021, 15053, 15090}
	config := "kind: Gateway\nmetadata: {name: front, namespace: edge}\nspec:\n  selector: {istio: ingress}\n  servers:\n"
	for _, port := range ports {
		config += fmt.Sprintf("  - {port: {number: %d, name: http-%[1]d, protocol: HTTP}, hosts: [\"*\"]}\n", port)
	}
	_, route, _ := strings.Cut(strings.Replace(ownRoute, "  - match: [{port: 80}]\n    directResponse", "  - directResponse", 1), "---\n")
	s := newFixture().attach("c1", "").config(t, config+"---\n"+route).snapshot
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	caller, _ := pod(t, network, "10.7.0.9", nil)
	for address, beside := range map[string]map[string]any{
		"10.7.0.7": {},
		"10.7.0.8": {"WORKLOAD_IDENTITY_SOCKET_FILE": "socket"},
	} {
		metadata := map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "edge", "LABELS": map[string]any{"istio": "ingress"}}
		maps.Copy(metadata, beside)
		node := parse(t, "router~"+address+"~gw.edge~edge.svc.cluster.local", metadata)
		ns := testbed.NewNamespace(t, address)
		ns.Join(network, address)
		testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: address, Config: sidecarConfig(t, node, s), Namespace: ns}).WaitReady(time.Minute)
		for _, port := range ports {
			r := caller.Get(fmt.Sprintf("http://%s:%d/", address, port), "Host", "www.example.com")
			served := len(beside) == 0 || port != 15021 && port != 15090
			if served != (r.Err == nil && r.Status == 200) {
				t.Errorf("%s with %v answers at port %d with %d %v; served: want %t", address, beside, port, r.Status, r.Err, served)
			}
		}
	}
}

// TestK86ListenersOfTheGatewayAPIAtPortsOfSidecars: the same is true of listeners of Gateways and ListenerSets of the Gateway API.
func TestK86ListenersOfTheGatewayAPIAtPortsOfSidecars(t *testing.T) {
	s := federationtest.Load(t, "../../federation/testdata/scenarios/gatewayapi/ports-of-agents.txtar")
	network := testbed.NewNetwork(t, "pods", "10.0.0.0/24")
	caller, _ := pod(t, network, "10.0.0.20", nil)
	for name, reserved := range map[string][]int{"plain": nil, "beside-agent": {15021, 15090}} {
		at := slices.IndexFunc(s.Proxies, func(p federationtest.Proxy) bool { return p.Name == name })
		node := nodeOf(t, s.Proxies[at])
		address := strings.Split(s.Proxies[at].ID, "~")[1]
		ns := testbed.NewNamespace(t, name)
		ns.Join(network, address)
		testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: name, Config: sidecarConfig(t, node, s.Snapshot()), Namespace: ns}).WaitReady(time.Minute)
		for _, port := range []int{80, 15001, 15006, 15008, 15021, 15053, 15090} {
			r := caller.Get(fmt.Sprintf("http://%s:%d/", address, port), "Host", "www.example.com")
			if served := !slices.Contains(reserved, port); served != (r.Err == nil && r.Status == 302) {
				t.Errorf("%s answers at port %d with %d %v; served: want %t", name, port, r.Status, r.Err, served)
			}
		}
	}
}
