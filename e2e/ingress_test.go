package e2e

import (
	"bytes"
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
	ingressGateway = "10.79.0.12"
	ingressApp     = "10.79.0.21"
)

// store is a namespace with a service, and Ingresses of the class ours.
const store = `apiVersion: v1
kind: Namespace
metadata: {name: store}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ours}
spec: {controller: istio.io/ingress-controller}
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
endpoints: [{addresses: [10.79.0.21], conditions: {ready: true}}]
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
	ca := testbed.NewAuthority(t, "sites")
	mesh := testbed.NewNetwork(t, "mesh", "10.79.0.0/24")
	c1 := testbed.StartKube(t, testbed.KubeOptions{Name: "c1", ServiceCIDR: "10.96.0.0/16"})
	servers := testbed.NewNamespace(t, "servers")
	servers.Join(mesh, "10.79.0.20")
	servers.AddLocal(ingressApp)
	startApp(t, "web", servers, on(ingressApp, 9080), nil)
	c1.Apply(strings.Split(store, "---\n")...)
	for _, file := range []string{"reader.yaml", "ingresses.yaml", "secrets.yaml"} {
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
	place.Join(mesh, ingressGateway)
	config := bootstrap("gateway", ingressGateway, "DELTA_GRPC", strings.TrimPrefix(hub.XDS, "unix:"))
	for _, change := range [][2]string{
		{"id: sidecar~", "id: router~"},
		{"metadata: {", "metadata: {LABELS: {istio: ingressgateway}, "},
		{".shop~shop.svc", ".istio-system~istio-system.svc"},
		{"NAMESPACE: shop", "NAMESPACE: istio-system"},
	} {
		config = bytes.Replace(config, []byte(change[0]), []byte(change[1]), 1)
	}
	envoy := testbed.StartEnvoy(t, testbed.EnvoyOptions{Name: "gateway", Namespace: place, Config: config})
	envoy.WaitReady(30 * time.Second)
	outside := testbed.NewNamespace(t, "outside")
	outside.Join(mesh, "10.79.0.50")
	apply := func(mode string) {
		hub.change(t, "apply", map[string]any{"manifests": []string{fmt.Sprintf(ingressSettings, mode)}})
	}
	plain := func(host, path string) testbed.Response {
		return outside.Get("http://"+ingressGateway+path, "Host", host)
	}
	secure := func() testbed.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+ingressGateway+"/hello", nil)
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

	apply("STRICT")
	eventually(t, "the gateway to serve", func() testbed.Response { return plain("plain.example.com", "/hello/you") }, answeredBy(t, "web"))
	for _, c := range []struct {
		host, path string
		want       int
	}{
		{"plain.example.com", "/helloyou", http.StatusNotFound},
		{"other.example.com", "/hello", http.StatusNotFound},
		{"secure.example.com", "/hello", http.StatusOK},
		{"secure.example.com", "/none", http.StatusServiceUnavailable},
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
		if !slices.Contains(found, "SERVICE_UNKNOWN Ingress store/secure of cluster c1") || !slices.Contains(found, "SECRET_MISSING secret c1/store/web-cert") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	cert, key := ca.Issue(testbed.Subject{Name: "secure", Hosts: []string{"secure.example.com"}})
	c1.Apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: web-cert, namespace: store}\ndata: {tls.crt: %s, tls.key: %s}\n",
		base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key)))
	eventually(t, "the gateway to serve TLS", secure, answeredBy(t, "web"))
	apply(`"OFF"`)
	eventually(t, "the gateway to serve nothing", func() testbed.Response { return plain("plain.example.com", "/hello") }, func(r testbed.Response) bool { return r.Err != nil })
}

// troubles are the codes and objects of what is wrong with sources and with the hub's own cluster.
func (h *hub) troubles(t *testing.T) (all []string) {
	t.Helper()
	data, err := h.operate(`{configSources {trouble {code object}} cluster(clusterID: "hub") {problems(first: 100) {nodes {code object}}}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	type problem struct{ Code, Object string }
	var answer struct {
		ConfigSources []struct{ Trouble []problem }
		Cluster       struct{ Problems struct{ Nodes []problem } }
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	for _, s := range answer.ConfigSources {
		answer.Cluster.Problems.Nodes = append(answer.Cluster.Problems.Nodes, s.Trouble...)
	}
	for _, p := range answer.Cluster.Problems.Nodes {
		all = append(all, p.Code+" "+p.Object)
	}
	return all
}
