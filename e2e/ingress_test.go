package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// store is Ingresses of the class ours.
const store = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ours}
spec: {controller: istio.io/ingress-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: plain, namespace: store}
spec:
  ingressClassName: ours
  rules:
  - host: plain.example.com
    http: {paths: [{path: /hello, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: secure, namespace: store}
spec:
  ingressClassName: ours
  tls: [{hosts: [secure.example.com], secretName: web-cert}]
  rules:
  - host: secure.example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /none, pathType: Exact, backend: {service: {name: none, port: {name: http}}}}
`

const ingressSettings = `apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec: {ingressControllerMode: %s}
`

// TestG16IngressesAreServed: with the rights of our manifests alone, a real Envoy in
// istio-system serves the Ingresses of another namespace, with the Secret of that namespace.
func TestG16IngressesAreServed(t *testing.T) {
	t.Parallel()
	r := startGatewayRig(t, gatewayOf{
		subnet: "10.79.0", objects: strings.Split(store, "---\n"), manifests: []string{"ingresses.yaml"}, namespace: "istio-system",
		labels: "istio: ingressgateway",
	})
	apply := func(mode string) {
		r.hub.change(t, "apply", map[string]any{"manifests": []string{fmt.Sprintf(ingressSettings, mode)}})
	}

	apply("STRICT")
	eventually(t, "the gateway to serve", func() testbed.Response { return r.plain("plain.example.com", "/hello/you") }, answeredBy(t, "web"))
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"plain.example.com", "/helloyou", http.StatusNotFound},
		{"other.example.com", "/hello", http.StatusNotFound},
		{"secure.example.com", "/hello", http.StatusOK},
		{"secure.example.com", "/none", http.StatusServiceUnavailable},
	} {
		if got := r.plain(c.host, c.path); got.Status != c.want {
			t.Errorf("%s%s: status %d, %v; want %d", c.host, c.path, got.Status, got.Err, c.want)
		}
	}
	if got := r.secure(t); got.Err == nil {
		t.Errorf("without the Secret, TLS gives status %d", got.Status)
	}
	testbed.WaitFor(t, within, "the problems", func() error {
		found := r.hub.troubles(t)
		if !slices.Contains(found, "SERVICE_UNKNOWN Ingress store/secure of cluster c1") ||
			!slices.Contains(found, "SECRET_MISSING secret c1/store/web-cert") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	r.keep()
	eventually(t, "the gateway to serve TLS", func() testbed.Response { return r.secure(t) }, answeredBy(t, "web"))
	apply(`"OFF"`)
	eventually(t, "the gateway to serve nothing", func() testbed.Response { return r.plain("plain.example.com", "/hello") },
		func(r testbed.Response) bool { return r.Err != nil })
}

// troubles are the codes and objects of what is wrong with sources and with the hub's own cluster.
func (h *hub) troubles(t *testing.T) (all []string) {
	t.Helper()
	data, err := h.operate(`{configSources {problems {code object}} cluster(clusterID: "hub") {problems(first: 100) {nodes {code object}}}}`,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	type problem struct{ Code, Object string }
	var answer struct {
		ConfigSources []struct{ Problems []problem }
		Cluster       struct{ Problems struct{ Nodes []problem } }
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	for _, s := range answer.ConfigSources {
		answer.Cluster.Problems.Nodes = append(answer.Cluster.Problems.Nodes, s.Problems...)
	}
	for _, p := range answer.Cluster.Problems.Nodes {
		all = append(all, p.Code+" "+p.Object)
	}
	return all
}
