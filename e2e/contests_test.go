package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// contestSettings have the Gateways and Ingresses of both clusters read, and the former's status written.
const contestSettings = `apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec:
  ingressControllerMode: STRICT
  sources:
  - {cluster: c1, namespaces: [shop], kinds: [Gateway.networking.istio.io, VirtualService.networking.istio.io], scope: MESH, status: true}
  - {cluster: c2, namespaces: [shop], kinds: [Gateway.networking.istio.io, VirtualService.networking.istio.io], scope: MESH, status: true}
`

// contested is a Gateway with a host, and a VirtualService that answers with a text.
const contested = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: %[1]s, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{%[2]s}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s, namespace: shop}
spec: {hosts: ["*.example.com"], gateways: [%[1]s], http: [{directResponse: {status: 200, body: {string: "%[3]s"}}}]}
`

const contestedIngress = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop, annotations: {kubernetes.io/ingress.class: istio}}
spec:
  rules:
  - host: ingress.example.com
    http: {paths: [{path: /of-%s, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
`

// contest is two clusters of the fixture that want the same hosts, and a gateway of each.
type contest struct {
	*fixture
	gateways map[string]*testbed.Namespace // by cluster
	ca       *testbed.Authority
	dir      string // of the certificate, which both gateways can read
}

// addresses are those of the gateways.
var contestAddresses = map[string]string{"c1": "10.77.0.41", "c2": "10.77.0.42"}

func newContest(t *testing.T, w *fixture) *contest {
	t.Helper()
	c := &contest{fixture: w, gateways: map[string]*testbed.Namespace{}, ca: testbed.NewAuthority(t, "contest"), dir: testbed.ShortDir(t)}
	if err := os.Chmod(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	chain, key := c.ca.Issue(testbed.Subject{Name: "contest", Hosts: []string{"tls.example.com"}})
	for name, content := range map[string][]byte{"chain.pem": chain, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(c.dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for cluster, kube := range map[string]*testbed.Kube{"c1": w.c1, "c2": w.c2} {
		kube.Apply(testbed.Definitions(t, "../federation/config/schema/crds/istio.json.gz", "gateways.networking.istio.io",
			"virtualservices.networking.istio.io")...)
		kube.Apply(fmt.Sprintf(contestedIngress, cluster))
		c.gateways[cluster] = c.startGateway(cluster)
	}
	return c
}

func (c *contest) startGateway(cluster string) *testbed.Namespace {
	ns := testbed.NewNamespace(c.t, "gateway-"+cluster)
	ns.Join(c.mesh, contestAddresses[cluster])
	config := bootstrap("gateway", contestAddresses[cluster], "DELTA_GRPC", strings.TrimPrefix(c.hub.XDS, "unix:"))
	config = bytes.Replace(config, []byte("id: sidecar~"), []byte("id: router~"), 1)
	config = bytes.Replace(config, []byte("metadata: {CLUSTER_ID: c1"),
		[]byte("metadata: {LABELS: {istio: ingressgateway}, CLUSTER_ID: "+cluster), 1)
	testbed.StartEnvoy(c.t, testbed.EnvoyOptions{Name: "gateway-" + cluster, Namespace: ns, Config: config}).WaitReady(patience)
	return ns
}

// awaitAnswer waits until the gateways of both clusters answer with the text.
func (c *contest) awaitAnswer(t *testing.T, scheme, want string) {
	t.Helper()
	for cluster, ns := range c.gateways {
		eventually(t, fmt.Sprintf("the gateway of %s to answer as %s says", cluster, want), func() testbed.Response {
			if scheme == "https" {
				return getTLS(t, ns, contestAddresses[cluster]+":8443", "tls.example.com", c.ca)
			}
			return ns.Get("http://"+contestAddresses[cluster]+":8080/", "Host", "same.example.com")
		}, func(r testbed.Response) bool {
			return r.Err == nil && r.Status == http.StatusOK && string(r.Body) == want
		})
	}
}

// awaitStatus waits until the status of the object in its cluster has the text, or has it no more.
func (c *contest) awaitStatus(t *testing.T, kube *testbed.Kube, plural, name, text string, has bool) {
	t.Helper()
	testbed.WaitFor(t, patience, fmt.Sprintf("%q in the status of %s: %t", text, name, has), func() error {
		answer := kube.Do(http.MethodGet, "/apis/networking.istio.io/v1/namespaces/shop/"+plural+"/"+name, nil)
		_, status, known := strings.Cut(string(answer.Body), `"status":{"`)
		if !known || strings.Contains(status, text) != has {
			return fmt.Errorf("the object is %s", answer.Body)
		}
		return nil
	})
}

// testContests (G141) has requests reach what comes first of two clusters, in the same way at the gateways of both, as long as it is
// there. What comes second says so in its own cluster.
func testContests(t *testing.T, w *fixture) {
	c := newContest(t, w)
	w.hub.change(t, "apply", map[string]any{"manifests": []string{contestSettings}})
	t.Run("objects of the same name", func(t *testing.T) { c.sameName(t) })
	t.Run("Gateways of one host", func(t *testing.T) { c.sameHost(t) })
	t.Run("Ingresses of one host", func(t *testing.T) { c.ingresses(t) })
}

// sameName: the object of the first cluster counts.
func (c *contest) sameName(t *testing.T) {
	const server = `port: {number: 8080, name: http, protocol: HTTP}, hosts: [same.example.com]`
	first, second := fmt.Sprintf(contested, "front", server, "c1"), fmt.Sprintf(contested, "front", server, "c2")
	c.c2.Apply(strings.Split(second, "---\n")...)
	c.awaitAnswer(t, "http", "c2")
	c.c1.Apply(strings.Split(first, "---\n")...)
	c.awaitAnswer(t, "http", "c1")
	c.awaitStatus(t, c.c2, "virtualservices", "front", "HIDDEN_BY", true)
	testbed.WaitFor(t, within, "the problem of the source", func() error {
		found := c.hub.troubles(t)
		if !slices.Contains(found, "HIDDEN_BY VirtualService shop/front") {
			return fmt.Errorf("there are %q", found)
		}
		return nil
	})
	c.c1.Delete(strings.Split(first, "---\n")...)
	c.awaitAnswer(t, "http", "c2")
	c.awaitStatus(t, c.c2, "virtualservices", "front", "HIDDEN_BY", false)
}

// sameHost: the older Gateway has the host, whatever its cluster; of the same age, the first name does.
func (c *contest) sameHost(t *testing.T) {
	server := fmt.Sprintf(`port: {number: 8443, name: https, protocol: HTTPS}, hosts: [tls.example.com],
    tls: {mode: SIMPLE, serverCertificate: %[1]s/chain.pem, privateKey: %[1]s/key.pem}`, c.dir)
	older, younger := fmt.Sprintf(contested, "alpha", server, "alpha"), fmt.Sprintf(contested, "beta", server, "beta")
	c.c2.Apply(strings.Split(older, "---\n")...)
	c.c1.Apply(strings.Split(younger, "---\n")...)
	c.awaitAnswer(t, "https", "alpha")
	c.awaitStatus(t, c.c1, "gateways", "beta", "GATEWAY_CONFLICT", true)
	c.awaitAnswer(t, "https", "alpha")
	c.c2.Delete(strings.Split(older, "---\n")...)
	c.awaitAnswer(t, "https", "beta")
	c.awaitStatus(t, c.c1, "gateways", "beta", "GATEWAY_CONFLICT", false)
}

// ingresses: the gateways of each cluster serve its own.
func (c *contest) ingresses(t *testing.T) {
	for cluster, ns := range c.gateways {
		ask := func(path string) testbed.Response {
			return ns.Get("http://"+contestAddresses[cluster]+path, "Host", "ingress.example.com")
		}
		eventually(t, "the Ingress of "+cluster, func() testbed.Response { return ask("/of-" + cluster) }, status(http.StatusOK))
		for other := range c.gateways {
			if r := ask("/of-" + other); other != cluster && r.Status != http.StatusNotFound {
				t.Errorf("the gateway of %s answers for the Ingress of %s with status %d, %v; want 404", cluster, other, r.Status, r.Err)
			}
		}
	}
	found := c.hub.troubles(t)
	if !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, "HOST_IN_SEVERAL_CLUSTERS ") }) {
		t.Errorf("the problems are %q", found)
	}
}
