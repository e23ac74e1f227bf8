package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// tasks is the fixture of Istio's bookinfo, httpbin and helloworld tasks: versions
// 1 and 2 of reviews are pods of a Kubernetes cluster, version 3 and everything
// else are machines that only the configuration knows.
type tasks struct {
	*fixture
	caller  *client            // Product page: a workload behind a captured sidecar.
	outside *testbed.Namespace // Not in the mesh.
	ingress *testbed.Envoy
	apps    map[string]*app
	ca      *testbed.Authority // Of the sites outside, and of the gateway.
}

// The addresses of what runs.
const (
	callerAddress   = "10.78.0.11"
	ingressAddress  = "10.78.0.12"
	externalAddress = "10.78.0.40"
)

var appAddresses = map[string]string{
	"reviews-v1": "10.78.0.21", "reviews-v2": "10.78.0.22", "reviews-v3": "10.78.0.23",
	"ratings-v1": "10.78.0.24", "ratings-v2": "10.78.0.28", "httpbin-v1": "10.78.0.25", "httpbin-v2": "10.78.0.26",
	"helloworld-v1": "10.78.0.27",
}

func newTasks(t *testing.T) *tasks {
	w := &tasks{
		fixture: &fixture{t: t, mesh: testbed.NewNetwork(t, "mesh", "10.78.0.0/24")}, apps: map[string]*app{},
		ca: testbed.NewAuthority(t, "sites"),
	}
	w.c1 = testbed.StartKube(t, testbed.KubeOptions{Name: "c1", ServiceCIDR: "10.96.0.0/16"})
	w.startApps()
	first, second := podOf("reviews-v1", "v1"), podOf("reviews-v2", "v2")
	w.c1.Apply(reviewsService, first.Manifest(), second.Manifest(), reviewsSlice)
	w.c1.ApplyStatus(first.Status(), second.Status())
	kubeconfig := filepath.Join(t.TempDir(), "c1")
	write(t, kubeconfig, string(w.c1.Kubeconfig()))
	w.hub = startHub(t, hubOptions{
		config: fmt.Sprintf("clusters:\n- {id: c1, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %s}}\n", kubeconfig),
		args:   []string{"--secret-dir", w.secrets(t)},
	})
	w.caller = w.startClient("productpage", callerAddress, "DELTA_GRPC")
	w.caller.envoy.WriteFile("ca.pem", w.ca.PEM)
	w.startIngress()
	w.keep(t, "workloads")
	return w
}

// secrets is a folder with the certificate of the gateway.
func (w *tasks) secrets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cert, key := w.ca.Issue(testbed.Subject{Name: "hello", Hosts: []string{"hello.example.com"}})
	if err := os.MkdirAll(filepath.Join(dir, "shop", "hello-cert"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "shop", "hello-cert", "tls.crt"), string(cert))
	write(t, filepath.Join(dir, "shop", "hello-cert", "tls.key"), string(key))
	return dir
}

// startApps runs all servers in one namespace, each at an address of its own.
func (w *tasks) startApps() {
	servers := testbed.NewNamespace(w.t, "servers")
	servers.Join(w.mesh, "10.78.0.20")
	for name, address := range appAddresses {
		servers.AddLocal(address)
		w.apps[name] = startApp(w.t, name, servers, on(address, 9080), nil)
	}
	servers.AddLocal(externalAddress)
	w.apps["external"] = startApp(w.t, "external", servers, on(externalAddress, 80), nil)
	w.apps["secure"] = startApp(w.t, "secure", servers, on(externalAddress, 443), site(w.ca, "secure.example.com"))
}

// startIngress runs an ingress gateway, and somebody outside who can reach it.
func (w *tasks) startIngress() {
	ns := testbed.NewNamespace(w.t, "ingress")
	ns.Join(w.mesh, ingressAddress)
	config := bootstrap("ingress", ingressAddress, "GRPC", strings.TrimPrefix(w.hub.XDS, "unix:"))
	config = bytes.Replace(config, []byte("id: sidecar~"), []byte("id: router~"), 1)
	config = bytes.Replace(config, []byte("metadata: {"), []byte("metadata: {LABELS: {istio: ingressgateway}, "), 1)
	w.ingress = testbed.StartEnvoy(w.t, testbed.EnvoyOptions{Name: "ingress", Namespace: ns, Config: config})
	w.ingress.WaitReady(patience)
	w.outside = testbed.NewNamespace(w.t, "outside")
	w.outside.Join(w.mesh, "10.78.0.50")
}

const reviewsService = `apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
apiVersion: v1
kind: Service
metadata:
  name: reviews
  namespace: shop
spec:
  clusterIP: 10.96.0.10
  selector:
    app: reviews
  ports:
  - name: http
    port: 9080
    targetPort: 9080
`

const reviewsSlice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: reviews-1
  namespace: shop
  labels:
    kubernetes.io/service-name: reviews
addressType: IPv4
ports:
- {name: http, port: 9080, protocol: TCP}
endpoints:
- {addresses: [10.78.0.21], conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: reviews-v1}}
- {addresses: [10.78.0.22], conditions: {ready: true}, targetRef: {kind: Pod, namespace: shop, name: reviews-v2}}
`

// podOf is a pod of reviews; its name says where it is.
func podOf(name, version string) testbed.Pod {
	return testbed.Pod{Namespace: "shop", Name: name, Labels: "{app: reviews, version: " + version + "}", Address: appAddresses[name]}
}

// The URLs at which the caller finds services.
const (
	reviewsURL = "http://10.96.0.10:9080"
	ratingsURL = "http://10.96.8.1:9080"
	httpbinURL = "http://10.96.8.2:8000"
)

// reviews asks the product page's question and returns which version answered.
func (w *tasks) reviews(headers ...string) (string, error) {
	return w.answerer(reviewsURL+"/reviews", append([]string{"Host", "reviews:9080"}, headers...)...)
}

func (w *tasks) ratings(headers ...string) testbed.Response {
	return w.caller.Get(ratingsURL+"/ratings", append([]string{"Host", "ratings:9080"}, headers...)...)
}

func (w *tasks) httpbin(path string, headers ...string) testbed.Response {
	return w.caller.Get(httpbinURL+path, append([]string{"Host", "httpbin:8000"}, headers...)...)
}

// answerer is the name of the app that answers.
func (w *tasks) answerer(url string, headers ...string) (string, error) {
	answer := w.caller.Get(url, headers...)
	if answer.Err != nil || answer.Status != http.StatusOK {
		return "", fmt.Errorf("status %d: %.100s: %w", answer.Status, answer.Body, answer.Err)
	}
	return answer.Echo(w.t).Name, nil
}

// versions sends n requests for reviews and counts who answers.
func (w *tasks) versions(t *testing.T, n int, headers ...string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for range n {
		name, err := w.reviews(headers...)
		if err != nil {
			t.Fatal(err)
		}
		counts[name]++
	}
	return counts
}

// only waits until this version of reviews answers, and then wants it to answer
// every request.
func (w *tasks) only(t *testing.T, version string, headers ...string) {
	t.Helper()
	testbed.WaitFor(t, within, "reviews "+version, func() error {
		name, err := w.reviews(headers...)
		if err == nil && name != "reviews-"+version {
			err = fmt.Errorf("%s answers", name)
		}
		return err
	})
	if counts := w.versions(t, 20, headers...); counts["reviews-"+version] != 20 {
		t.Errorf("20 requests of %s should all be answered by %s: %v", strings.Join(headers, " "), version, counts)
	}
}

// eventually waits until a response is as wanted.
func eventually(t *testing.T, what string, ask func() testbed.Response, wanted func(testbed.Response) bool) {
	t.Helper()
	testbed.WaitFor(t, within, what, func() error {
		if r := ask(); !wanted(r) {
			return errors.Join(fmt.Errorf("status %d, %v: %.200s", r.Status, r.Header, r.Body), r.Err)
		}
		return nil
	})
}

func status(want int) func(testbed.Response) bool {
	return func(r testbed.Response) bool { return r.Err == nil && r.Status == want }
}
