package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const (
	edgeGateway = "10.79.1.12"
	edgeApp     = "10.79.1.21"
)

// boutique is a namespace with a service, and objects of the Gateway API.
const boutique = `apiVersion: v1
kind: Namespace
metadata: {name: store}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: store}
spec:
  clusterIP: 10.96.0.20
  ports: [{name: http, port: 80, targetPort: 9080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: store, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 9080, protocol: TCP}]
endpoints: [{addresses: [10.79.1.21], conditions: {ready: true}}]
---
apiVersion: gateway.networking.k8s.io/v1
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
    kinds: [GatewayClass.gateway.networking.k8s.io, Gateway.gateway.networking.k8s.io, HTTPRoute.gateway.networking.k8s.io, GRPCRoute.gateway.networking.k8s.io, TLSRoute.gateway.networking.k8s.io, TCPRoute.gateway.networking.k8s.io, ReferenceGrant.gateway.networking.k8s.io]
`

// gatewayDefinitions are the CustomResourceDefinitions of the Gateway API.
func gatewayDefinitions(t *testing.T) (all []string) {
	t.Helper()
	packed, err := os.Open("../federation/config/schema/crds/gateway-api.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		all = append(all, string(d))
	}
	return all
}

// TestG21GatewayAPIIsServed: with the rights of our manifests alone, a real Envoy serves the
// Gateways and routes of its cluster, follows their changes, and ends TLS.
func TestG21GatewayAPIIsServed(t *testing.T) {
	ca := testbed.NewAuthority(t, "sites")
	mesh := testbed.NewNetwork(t, "mesh", "10.79.1.0/24")
	c1 := testbed.StartKube(t, testbed.KubeOptions{Name: "c1", ServiceCIDR: "10.96.0.0/16"})
	servers := testbed.NewNamespace(t, "servers")
	servers.Join(mesh, "10.79.1.20")
	servers.AddLocal(edgeApp)
	startApp(t, "web", servers, on(edgeApp, 9080), nil)
	c1.Apply(gatewayDefinitions(t)...)
	c1.Apply(strings.Split(boutique, "---\n")...)
	c1.Apply(fmt.Sprintf(boutiqueRoute, "1"))
	for _, file := range []string{"reader.yaml", "gateway-api.yaml", "secrets.yaml"} {
		manifest, err := os.ReadFile("../deploy/kubernetes/" + file)
		if err != nil {
			t.Fatal(err)
		}
		c1.Apply(strings.ReplaceAll(string(manifest), "namespace: edge", "namespace: store"))
	}
	access := c1.Admin
	access.Cert, access.Key = nil, nil
	access.Token = c1.ServiceAccountToken(testbed.TokenOptions{Namespace: "isthmus", Account: "isthmus-reader"})
	kubeconfig := filepath.Join(t.TempDir(), "c1")
	write(t, kubeconfig, string(access.Kubeconfig()))
	hub := startHub(t, hubOptions{config: fmt.Sprintf("clusters:\n- {id: c1, provider: Kubernetes, kubernetes: {kubeconfig: %s, secrets: true}}\n", kubeconfig)})
	place := testbed.NewNamespace(t, "gateway")
	place.Join(mesh, edgeGateway)
	config := bootstrap("gateway", edgeGateway, "DELTA_GRPC", strings.TrimPrefix(hub.XDS, "unix:"))
	for _, change := range [][2]string{
		{"id: sidecar~", "id: router~"},
		{"metadata: {", "metadata: {LABELS: {gateway.networking.k8s.io/gateway-name: edge}, "},
		{".shop~shop.svc", ".store~store.svc"},
		{"NAMESPACE: shop", "NAMESPACE: store"},
	} {
		config = bytes.Replace(config, []byte(change[0]), []byte(change[1]), 1)
	}
	envoy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Namespace: place, Config: config})
	envoy.WaitReady(30 * time.Second)
	outside := testbed.NewNamespace(t, "outside")
	outside.Join(mesh, "10.79.1.50")
	plain := func(host, path string) testbed.Response {
		return outside.Get("http://"+edgeGateway+path, "Host", host)
	}
	secure := func() testbed.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+edgeGateway+"/hello", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "secure.example.com"
		answer, err := outside.Client(&tls.Config{RootCAs: ca.Pool(), ServerName: request.Host}).Do(request)
		if err != nil {
			return testbed.Response{Err: err}
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return testbed.Response{Status: answer.StatusCode, Header: answer.Header, Body: body, Err: err}
	}
	version := func(want string) func(testbed.Response) bool {
		return func(r testbed.Response) bool { return r.Status == http.StatusOK && r.Header.Get("X-Version") == want }
	}

	hub.change(t, "apply", map[string]any{"manifests": []string{gatewaySettings}})
	eventually(t, "the gateway to serve", func() testbed.Response { return plain("a.example.com", "/hello/you") }, version("1"))
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"a.example.com", "/helloyou", http.StatusNotFound},
		{"example.org", "/hello", http.StatusNotFound},
		{"a.example.com", "/none", http.StatusInternalServerError},
	} {
		if r := plain(c.host, c.path); r.Status != c.want {
			t.Errorf("%s%s: status %d, %v; want %d", c.host, c.path, r.Status, r.Err, c.want)
		}
	}
	if r := secure(); r.Err == nil {
		t.Errorf("without the Secret, TLS gives status %d", r.Status)
	}
	testbed.WaitFor(t, within, "the problems", func() error {
		found := hub.troubles(t)
		if !slices.Contains(found, "BACKEND_NOT_FOUND HTTPRoute.gateway.networking.k8s.io store/web of cluster c1") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	cert, key := ca.Issue(testbed.Subject{Name: "secure", Hosts: []string{"secure.example.com"}})
	c1.Apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: web-cert, namespace: store}\ndata: {tls.crt: %s, tls.key: %s}\n",
		base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key)))
	eventually(t, "the gateway to serve TLS", secure, answeredBy(t, "web"))
	c1.Apply(fmt.Sprintf(boutiqueRoute, "2"))
	eventually(t, "the change of the route", func() testbed.Response { return plain("a.example.com", "/hello") }, version("2"))
	c1.Delete(fmt.Sprintf(boutiqueRoute, "2"))
	eventually(t, "the end of the route", func() testbed.Response { return plain("a.example.com", "/hello") }, func(r testbed.Response) bool { return r.Status == http.StatusNotFound })
}
