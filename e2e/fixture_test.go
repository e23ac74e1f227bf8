package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

const webHost = "web.shop.svc.cluster.local"

// fixture is two Kubernetes clusters and a Consul datacenter, with one workload
// of the service web each, and clients behind a captured sidecar.
type fixture struct {
	t      *testing.T
	mesh   *testbed.Network
	c1, c2 *testbed.Kube
	dc1    *testbed.Consul
	hub    *hub
}

// The workloads' addresses; each echo server says the name of its cluster.
var pods = map[string]string{"c1": "10.77.0.21", "c2": "10.77.0.22", "dc1": "10.77.0.23"}

func newFixture(t *testing.T) *fixture {
	w := &fixture{t: t, mesh: testbed.NewNetwork(t, "mesh", "10.77.0.0/24")}
	w.c1 = testbed.StartKube(t, testbed.KubeOptions{Name: "c1", ServiceCIDR: "10.96.0.0/16"})
	w.c2 = testbed.StartKube(t, testbed.KubeOptions{Name: "c2", ServiceCIDR: "10.97.0.0/16"})
	w.dc1 = testbed.StartConsul(t, testbed.ConsulOptions{Name: "dc1"})
	for name, address := range pods {
		pod := testbed.NewNamespace(t, name)
		pod.Join(w.mesh, address)
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: pod, HTTP: []int{8080}, TCP: []int{9000}})
	}
	w.c1.Apply(kubeService("shop/web", "10.96.0.10"), slice(pods["c1"]))
	w.c2.Apply(kubeService("shop/web", "10.97.0.10"), slice(pods["c2"]))
	w.registerConsul()
	w.hub = startHub(t, hubOptions{config: w.config()})
	return w
}

// kubeService is a Service NAMESPACE/NAME with two ports, and its Namespace.
func kubeService(key, vip string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
---
apiVersion: v1
kind: Service
metadata:
  name: %[2]s
  namespace: %[1]s
spec:
  clusterIP: %[3]s
  selector:
    app: web
  ports:
  - name: http
    port: 8080
    targetPort: 8080
  - name: tcp-line
    port: 9000
    targetPort: 9000
`, namespace, name, vip)
}

func slice(address string) string { return kubeSlice("shop/web-1", address, 8080) }

// kubeSlice is an EndpointSlice NAMESPACE/SERVICE-N with one endpoint.
func kubeSlice(key, address string, http int) string {
	namespace, name, _ := strings.Cut(key, "/")
	service, _, _ := strings.Cut(name, "-")
	return fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[2]s
  namespace: %[1]s
  labels:
    kubernetes.io/service-name: %[3]s
addressType: IPv4
ports:
- name: http
  port: %[5]d
  protocol: TCP
- name: tcp-line
  port: 9000
  protocol: TCP
endpoints:
- addresses:
  - %[4]s
  conditions:
    ready: true
`, namespace, name, service, address, http)
}

func (w *fixture) registerConsul() {
	w.dc1.Put("/v1/catalog/register", map[string]any{
		"Node": "vm-1", "Address": pods["dc1"],
		"Service": map[string]any{"ID": "web-1", "Service": "web", "Port": 8080, "Meta": map[string]string{"protocol": "http"}},
		"Check":   map[string]any{"Node": "vm-1", "CheckID": "web-1", "Name": "web", "Status": "passing", "ServiceID": "web-1"},
	})
}

func (w *fixture) config() string {
	dir := w.t.TempDir()
	for name, kube := range map[string]*testbed.Kube{"c1": w.c1, "c2": w.c2} {
		write(w.t, filepath.Join(dir, name), string(kube.Kubeconfig()))
	}
	return fmt.Sprintf(`clusters:
- id: c1
  provider: Kubernetes
  network: n1
  kubernetes: {kubeconfig: %[1]s/c1}
- id: c2
  provider: Kubernetes
  network: n2
  kubernetes: {kubeconfig: %[1]s/c2}
- id: dc1
  provider: Consul
  network: n3
  consul: {address: %[2]q, datacenter: dc1, hostname: "{{.Service}}.shop.svc.cluster.local"}
`, dir, w.dc1.URL)
}

// awaitEndpoints waits until the hub's view of the service is exactly that.
func (w *fixture) awaitEndpoints(limit time.Duration, clusters ...string) {
	w.t.Helper()
	testbed.WaitFor(w.t, limit, "endpoints of "+strings.Join(clusters, " "), func() error {
		found, err := w.hub.endpoints(webHost)
		if err != nil {
			return err
		}
		for _, c := range clusters {
			if !found[pods[c]+"@"+c] {
				return fmt.Errorf("%s is not among %v", c, found)
			}
		}
		if len(found) != len(clusters) {
			return fmt.Errorf("endpoints are %v", found)
		}
		return nil
	})
}

// client is a workload without a proxy of its own knowledge: all its traffic is
// captured by the sidecar beside it.
type client struct {
	*testbed.Namespace
	envoy  *testbed.Envoy
	host   string   // that it asks for
	header []string // and with which, as names and values
}

func (w *fixture) startClient(name, address, apiType string) *client {
	c := &client{Namespace: testbed.NewNamespace(w.t, name), host: webHost}
	c.Join(w.mesh, address)
	c.Capture(testbed.ProxyUID)
	c.envoy = testbed.StartEnvoy(w.t, testbed.EnvoyOptions{
		Name: name, Namespace: c.Namespace, Config: bootstrap(name, address, apiType, strings.TrimPrefix(w.hub.XDS, "unix:")),
	})
	c.envoy.WaitReady(patience)
	return c
}

func bootstrap(name, address, apiType, socket string) []byte {
	return fmt.Appendf(nil, `
node:
  id: sidecar~%[2]s~%[1]s.shop~shop.svc.cluster.local
  cluster: %[1]s
  metadata: {CLUSTER_ID: c1, NAMESPACE: shop, INSTANCE_IPS: %[2]s}
dynamic_resources:
  ads_config:
    api_type: %[3]s
    transport_api_version: V3
    grpc_services: [{envoy_grpc: {cluster_name: hub}}]
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
static_resources:
  clusters:
  - name: hub
    type: STATIC
    connect_timeout: 2s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: hub
      endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %[4]s}}}}]}]
`, name, address, apiType, socket)
}

// ask sends one request to the service's VIP and returns who answered.
func (c *client) ask(t *testing.T) (string, error) {
	answer := c.Get("http://10.96.0.10:8080/", append([]string{"Host", c.host + ":8080"}, c.header...)...)
	if answer.Err != nil || answer.Status != 200 {
		return "", fmt.Errorf("status %d: %w", answer.Status, answer.Err)
	}
	return answer.Echo(t).Name, nil
}

// answerers sends n requests and counts who answered; a failed one ends the test.
func (c *client) answerers(t *testing.T, n int) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for range n {
		name, err := c.ask(t)
		if err != nil {
			t.Fatalf("%s: a request failed: %v", c, err)
		}
		counts[name]++
	}
	return counts
}

// awaitAnswerers waits until exactly these clusters answer.
func (c *client) awaitAnswerers(t *testing.T, limit time.Duration, clusters ...string) {
	t.Helper()
	testbed.WaitFor(t, limit, "answers of "+strings.Join(clusters, " "), func() error {
		counts := map[string]int{}
		for range 4 * len(clusters) {
			name, err := c.ask(t)
			if err != nil {
				return err
			}
			counts[name]++
		}
		for _, want := range clusters {
			if counts[want] == 0 {
				return fmt.Errorf("%s does not answer: %v", want, counts)
			}
		}
		if len(counts) != len(clusters) {
			return fmt.Errorf("answers are %v", counts)
		}
		return nil
	})
}
