package e2e

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// agentFilters enable EnvoyFilters for the namespace: one adds a header to responses, and one has inbound listeners
// run a script that Envoy cannot load.
var agentFilters = []string{
	`
apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec: {envoyFilters: {namespaces: [shop]}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: marks, namespace: shop}
spec:
  workloadSelector: {labels: {app: client}}
  configPatches:
  - applyTo: ROUTE_CONFIGURATION
    match: {context: SIDECAR_OUTBOUND}
    patch:
      operation: MERGE
      value: {response_headers_to_add: [{header: {key: x-marked, value: first}}]}
`, `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: breaks, namespace: shop}
spec:
  workloadSelector: {labels: {app: server}}
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: SIDECAR_INBOUND}
    patch:
      operation: INSERT_FIRST
      value:
        name: envoy.filters.http.lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: this is not Lua}
`,
}

// TestK89FiltersOfUnmodifiedAgents has EnvoyFilters change the proxies of Istio's unmodified agents. One that
// breaks the inbound listener of the server has Envoy's words in its status; the server goes on answering, by mutual
// TLS, and the other EnvoyFilter, and a change of it, are in force.
func TestK89FiltersOfUnmodifiedAgents(t *testing.T) {
	t.Parallel()
	w := newAgentFixture(t, "")
	h := &hub{Hub: w.hub}
	server, client := w.pod("server"), w.pod("client")
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	server.agent.WaitReady(patience)
	client.agent.WaitReady(patience)
	marked := func(want string) {
		t.Helper()
		testbed.WaitFor(t, patience, "an answer marked "+want, func() error {
			answer := client.Get("http://10.96.0.10:8080/", "Host", webHost+":8080")
			if answer.Err != nil || answer.Status != 200 || answer.Header.Get("X-Marked") != want {
				return fmt.Errorf("it answers %d with the mark %q, %w", answer.Status, answer.Header.Get("X-Marked"), answer.Err)
			}
			if got := answer.Echo(t).Header.Get("X-Forwarded-Client-Cert"); !strings.Contains(got, "URI=spiffe://cluster.local/ns/shop/sa/client") {
				return fmt.Errorf("the server sees the caller %q", got)
			}
			return nil
		})
	}
	h.change(t, "apply", map[string]any{"manifests": agentFilters[:1]})
	marked("first")
	h.change(t, "apply", map[string]any{"manifests": agentFilters[1:]})
	testbed.WaitFor(t, patience, "the status of the EnvoyFilter", func() error {
		var said struct {
			ConfigObjects struct {
				Nodes []struct {
					Status struct {
						Findings []struct{ Code, Message string }
					}
				}
			}
		}
		err := h.query(`{ configObjects(filter: {name: "breaks"}) { nodes { status { findings { code message } } } } }`, &said)
		if text := fmt.Sprint(said); err != nil || !strings.Contains(text, "REJECTED_BY_PROXY") || !strings.Contains(text, "script load error") {
			return fmt.Errorf("it is %s, %w", text, err)
		}
		return nil
	})
	marked("first")
	h.change(t, "apply", map[string]any{"manifests": []string{strings.Replace(agentFilters[0], "value: first", "value: second", 1)}})
	marked("second")
	noPanic(t, w.hub)
}
