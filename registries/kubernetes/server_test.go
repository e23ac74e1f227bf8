package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a real API server behind a proxy.
type rig struct {
	kube   *testbed.Kube
	proxy  *testbed.Proxy
	client *kube.Client
	reg    func(*Options) // changes the options of the next registry
	last   *Registry
}

const testNamespace = "suite"

func newRig(t *testing.T, options testbed.KubeOptions) *rig {
	t.Helper()
	server := testbed.StartKube(t, options)
	server.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + testNamespace + "}\n")
	testbed.WaitFor(t, 5*time.Minute, "the API server to publish itself", func() error { // else that is a change in the midst of a test
		if answer := server.Do("GET", "/api/v1/namespaces/default/services/kubernetes", nil); answer.Status != http.StatusOK {
			return fmt.Errorf("status %d", answer.Status)
		}
		return nil
	})
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{kube: server, proxy: testbed.StartProxy(t, u.Host)}
	r.client = r.connect(t, server.Admin)
	return r
}

// connect makes a client that goes through the proxy.
func (r *rig) connect(t *testing.T, access testbed.Access) *kube.Client {
	t.Helper()
	access.URL = "https://" + r.proxy.Addr()
	credentials, err := kube.Parse(access.Kubeconfig(), kube.ParseOptions{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.Connect(credentials, kube.ConnectOptions{Allow: func(netip.AddrPort) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (r *rig) Run(ctx context.Context, to registrytest.Sink) error {
	o := Options{Cluster: "c1", Client: r.client, Explain: kube.Explain, Canary: time.Second}
	if r.reg != nil {
		r.reg(&o)
	}
	r.last = New(o)
	return r.last.Run(ctx, to)
}

func (r *rig) Apply(_ testing.TB, s registrytest.Service) {
	r.kube.Apply(serviceManifest(s.Name, fmt.Sprintf("ports: [{name: http, port: %d}]", s.Port)), sliceManifest(s))
}

func serviceManifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", name, testNamespace, spec)
}

func sliceManifest(s registrytest.Service) string {
	var endpoints []string
	for _, ip := range s.Endpoints {
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses":[%q]}`, ip))
	}
	return fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",
"metadata":{"name":%q,"namespace":%q,"labels":{"kubernetes.io/service-name":%q}},
"ports":[{"name":"http","port":%d}],"endpoints":[%s]}`, s.Name, testNamespace, s.Name, s.Port, strings.Join(endpoints, ","))
}

func (r *rig) Delete(_ testing.TB, name string) {
	for _, path := range []string{
		"/api/v1/namespaces/" + testNamespace + "/services/" + name,
		"/apis/discovery.k8s.io/v1/namespaces/" + testNamespace + "/endpointslices/" + name,
	} {
		r.kube.Do("DELETE", path, nil)
	}
}

func (r *rig) Key(name string) federation.ServiceKey { return serviceKey(name) }

func serviceKey(name string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(name + "." + testNamespace + ".svc.cluster.local"), Namespace: testNamespace}
}

func (r *rig) Cut(testing.TB) {
	r.proxy.Refuse()
	r.proxy.Reset()
}

func (r *rig) Mend(testing.TB) { r.proxy.Pass() }

func TestConformance(t *testing.T) {
	t.Parallel()
	registrytest.Suite(t, newRig(t, testbed.KubeOptions{}))
}
