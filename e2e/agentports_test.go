package e2e

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// agentsPorts are a Gateway and ServiceEntries of which some ports are those of Istio's agents and their proxies.
const agentsPorts = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: web, namespace: shop}
spec:
  selector: {app: ingress}
  servers:
  - {port: {number: 8081, name: http, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 15000, name: http-admin, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 15020, name: tcp-agent, protocol: TCP}, hosts: ["*"]}
  - {port: {number: 15021, name: http-ready, protocol: HTTP}, hosts: ["*"]}
  - {port: {number: 15090, name: http-stats, protocol: HTTP}, hosts: ["*"]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [web]
  http: [{directResponse: {status: 299}}]
  tcp: [{route: [{destination: {host: web, port: {number: 8080}}}]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: far, namespace: shop}
spec:
  hosts: [far.example.com]
  location: MESH_EXTERNAL
  resolution: STATIC
  endpoints: [{address: 10.78.0.21}]
  ports:
  - {number: 8080, name: http, protocol: HTTP}
  - {number: 15001, name: http-out, protocol: HTTP}
  - {number: 15006, name: http-in, protocol: HTTP}
  - {number: 15021, name: http-ready, protocol: HTTP}
  - {number: 15090, name: http-stats, protocol: HTTP}
`

// TestK86PortsOfAgentsAreReported has a Gateway and a ServiceEntry name ports at which Istio's unmodified agent and its
// proxy listen themselves. What they say of other ports is in force, no proxy rejects anything, and
// each object says which of its ports have no effect.
func TestK86PortsOfAgentsAreReported(t *testing.T) {
	t.Parallel()
	w := newAgentFixture(t, "")
	h := &hub{Hub: w.hub}
	h.change(t, "apply", map[string]any{"manifests": []string{agentsPorts}})
	server, client, ingress := w.pod("server"), w.pod("client"), w.pod("ingress")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	for _, p := range []*agentPod{client, ingress, server} {
		p.agent.WaitReady(patience)
	}
	testbed.WaitFor(t, patience, "an answer of the gateway's other port", func() error {
		if answer := client.Get("http://"+agentPods["ingress"]+":8081/", "Host", "any.example.com"); answer.Status != 299 {
			return fmt.Errorf("it answers %d, %w", answer.Status, answer.Err)
		}
		return nil
	})
	var said struct {
		Proxies struct {
			Nodes []struct {
				NodeID string
				Sync   []struct{ TypeURL, State, LastError string }
			}
		}
		ConfigObjects struct {
			Nodes []struct {
				Name   string
				Status struct {
					Findings []struct{ Code, Field, Message string }
				}
			}
		}
		Clusters struct{ Nodes []cluster }
	}
	err := h.query(`{ proxies { nodes { nodeID sync { typeUrl state lastError } } }
		configObjects(filter: {name: "web"}) { nodes { name status { findings { code field message } } } }
		clusters(first: 20) { nodes { clusterID problems(first: 100) { nodes { code object field message } } } } }`, &said)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range said.Proxies.Nodes {
		for _, s := range p.Sync {
			if s.LastError != "" {
				t.Errorf("%s rejects %s: %s", p.NodeID, s.TypeURL, s.LastError)
			}
		}
	}
	text := fmt.Sprint(said.ConfigObjects, said.Clusters)
	for i, number := range []int{15000, 15020, 15021, 15090} {
		if want := fmt.Sprintf("servers[%d]: port %d", i+1, number); !strings.Contains(text, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	for i := range 4 {
		if want := fmt.Sprintf("spec.ports[%d]", i+1); !strings.Contains(text, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	noPanic(t, w.hub)
}
