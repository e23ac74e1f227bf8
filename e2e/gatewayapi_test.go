package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// boutique is a gateway of the Gateway API.
const boutique = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mesh}
spec: {controllerName: isthmus.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: store}
spec:
  gatewayClassName: mesh
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: "*.example.com"}
  - name: https
    port: 443
    protocol: HTTPS
    hostname: secure.example.com
    tls: {certificateRefs: [{name: web-cert}]}
  - {name: other, port: 443, protocol: HTTPS, hostname: other.example.com, tls: {certificateRefs: [{name: web-cert}]}}
`

const boutiqueRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: store}
spec:
  parentRefs: [{name: edge}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /hello}}]
    filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-version, value: "%s"}]}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {type: Exact, value: /hello/moved}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: https, path: {type: ReplaceFullPath, replaceFullPath: /hello}}}]
  - matches: [{path: {type: Exact, value: /none}}]
    backendRefs: [{name: none, port: 80}]
`

const gatewaySettings = `apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec:
  sources:
  - cluster: c1
    namespaces: ["*"]
    kinds: [GatewayClass.gateway.networking.k8s.io, Gateway.gateway.networking.k8s.io, HTTPRoute.gateway.networking.k8s.io, GRPCRoute.gateway.networking.k8s.io, TLSRoute.gateway.networking.k8s.io, TCPRoute.gateway.networking.k8s.io, ReferenceGrant.gateway.networking.k8s.io, BackendTLSPolicy.gateway.networking.k8s.io, ConfigMap]
`

// gatewayDefinitions are the CustomResourceDefinitions of the Gateway API.
func gatewayDefinitions(t *testing.T) (all []string) { return definitions(t, "gateway-api") }

// definitions are the CustomResourceDefinitions of the module.
func definitions(t *testing.T, module string) []string {
	return testbed.Definitions(t, "../federation/config/schema/crds/"+module+".json.gz")
}

// TestG21GatewayAPIIsServed: with the rights of our manifests alone, a real Envoy serves the
// Gateways and routes of its cluster, follows their changes, ends TLS, speaks TLS to
// backends that must have it, repeats requests, and verifies tokens while their issuer is away.
func TestG21GatewayAPIIsServed(t *testing.T) {
	t.Parallel()
	r := startGatewayRig(t, gatewayOf{
		subnet: "10.79.1", objects: slices.Concat(gatewayDefinitions(t), strings.Split(boutique, "---\n"),
			[]string{fmt.Sprintf(boutiqueRoute, "1")}),
		manifests: []string{"gateway-api.yaml", "backend-authorities.yaml"}, namespace: "store",
		labels: "gateway.networking.k8s.io/gateway-name: edge",
	})
	version := func(want string) func(testbed.Response) bool {
		return func(r testbed.Response) bool { return r.Status == http.StatusOK && r.Header.Get("X-Version") == want }
	}

	r.hub.change(t, "apply", map[string]any{"manifests": []string{gatewaySettings}})
	eventually(t, "the gateway to serve", func() testbed.Response { return r.plain("a.example.com", "/hello/you") }, version("1"))
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"a.example.com", "/helloyou", http.StatusNotFound},
		{"example.org", "/hello", http.StatusNotFound},
		{"a.example.com", "/none", http.StatusInternalServerError},
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
		if !slices.Contains(found, "BACKEND_NOT_FOUND HTTPRoute.gateway.networking.k8s.io store/web of cluster c1") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	r.keep()
	eventually(t, "the gateway to serve TLS", func() testbed.Response { return r.secure(t) }, answeredBy(t, "web"))
	if got := r.misdirected(t); got.Status != http.StatusMisdirectedRequest { // G79
		t.Errorf("for a host of another listener, status %d, %v; want 421", got.Status, got.Err)
	}
	r.c1.Apply(fmt.Sprintf(boutiqueRoute, "2"))
	eventually(t, "the change of the route", func() testbed.Response { return r.plain("a.example.com", "/hello") }, version("2"))
	r.speakTLS(t)
	r.presentCertificate(t)
	r.verifyByOption(t)
	r.retry(t)
	r.outliveTheIssuer(t)
	r.c1.Delete(fmt.Sprintf(boutiqueRoute, "2"))
	eventually(t, "the end of the route", func() testbed.Response { return r.plain("a.example.com", "/hello") },
		func(r testbed.Response) bool { return r.Status == http.StatusNotFound })
}
