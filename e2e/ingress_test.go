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

// store is Ingresses of the class ours, of another one, and without a class.
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
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: theirs}
spec: {controller: example.com/other}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: theirs, namespace: store}
spec:
  ingressClassName: theirs
  rules:
  - host: theirs.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: unclassed, namespace: store}
spec:
  tls: [{hosts: [unclassed.example.com], secretName: unclassed-cert}]
  rules:
  - host: unclassed.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
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

	r.keepAs("unclassed-cert", r.ca, "unclassed.example.com")
	apply("DEFAULT")
	r.awaitClasses(t, http.StatusOK)
	apply("STRICT")
	r.awaitClasses(t, http.StatusNotFound)
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

// awaitClasses (G12) waits until requests for the Ingress without a class get that, in plain text and by TLS. Those for the class of
// the hub are served in any case, and those for another class never.
func (r *gatewayRig) awaitClasses(t *testing.T, unclassed int) {
	t.Helper()
	const host = "unclassed.example.com"
	eventually(t, fmt.Sprintf("status %d of the Ingress without a class", unclassed),
		func() testbed.Response { return r.plain(host, "/hello") }, status(unclassed))
	secure := func() testbed.Response { return getTLS(t, r.outside, r.address, host, r.ca) }
	if unclassed == http.StatusOK {
		eventually(t, "the Ingress without a class by TLS", secure, answeredBy(t, "web"))
	} else {
		eventually(t, "no TLS for the Ingress without a class", secure, func(r testbed.Response) bool { return r.Err != nil })
	}
	eventually(t, "the Ingress of our class", func() testbed.Response { return r.plain("plain.example.com", "/hello") }, answeredBy(t, "web"))
	if got := r.plain("theirs.example.com", "/hello"); got.Status != http.StatusNotFound {
		t.Errorf("the Ingress of another class: status %d, %v; want 404", got.Status, got.Err)
	}
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
