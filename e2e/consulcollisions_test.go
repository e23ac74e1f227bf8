package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
)

// Three pairs of clusters have services of the same names: the datacenters a and b have the default hostnames, d has those of the
// cluster k, and s and e have theirs in different namespaces.
var colliding = []struct{ cluster, address, consul string }{
	{cluster: "k", address: "10.79.0.31"},
	{"a", "10.79.0.32", ""},
	{"b", "10.79.0.33", ""},
	{"d", "10.79.0.34", `, hostname: "{{.Service}}.shop.svc.cluster.local"`},
	{"s", "10.79.0.35", `, namespace: shop, hostname: "{{.Service}}.example"`},
	{"e", "10.79.0.36", `, namespace: bank, hostname: "{{.Service}}.example"`},
}

// TestR98NamesThatCollideAreReportedAndLeadWhereDocumented has real Consul servers and a Kubernetes cluster whose services have the
// same names, and differ. What they disagree on is a conflict or a reason, and requests go where the page about clusters says.
func TestR98NamesThatCollideAreReportedAndLeadWhereDocumented(t *testing.T) {
	t.Parallel()
	w := &fixture{t: t, mesh: testbed.NewNetwork(t, "mesh", "10.79.0.0/24")}
	w.collide()
	c := w.startNamesClient("10.79.0.9")
	for _, want := range []struct{ name, answer, conflicts string }{
		{"web.service.consul:8080", "a b", "PORT_PROTOCOL a b, PORT_NAME a b"},
		{"web.service.dc-b.consul:8080", "b", ""},
		{"api.service.consul:8080", "a", ""},
		{"api.service.consul:9090", "b", ""},
		{"pay.shop.svc.cluster.local:8080", "d k", "PORT_PROTOCOL k d, PORT_NAME k d"},
		{"web.example:8080", "s", ""},
	} {
		host, port, _ := strings.Cut(want.name, ":")
		c.awaitNamedAt(t, host, port, want.answer)
		if got := w.hub.conflictsOf(t, host); got != want.conflicts {
			t.Errorf("conflicts of %s are %q, want %q", host, got, want.conflicts)
		}
	}
	for name, want := range map[string]string{
		"api.service.consul:8080": "b: PORT_NOT_DECLARED: b/Consul does not declare port 8080 of the service",
		"web.example:8080": "e: HOSTNAME_TAKEN: service bank/web.example is excluded: shop/web.example has the same hostname " +
			"and is of the proxies' own namespace; give one of them another name",
	} {
		if got := w.hub.excluded(t, "caller.shop", name); !slices.Contains(got, want) {
			t.Errorf("of %s, excluded are %q, want %q", name, got, want)
		}
	}
}

// collide starts the clusters and the hub.
func (w *fixture) collide() {
	kube := testbed.StartKube(w.t, testbed.KubeOptions{Name: "k"})
	kube.Apply(kubeService("shop/pay", "10.96.0.10"), kubeSlice("shop/pay-1", "10.79.0.31", 8080))
	kubeconfig := filepath.Join(w.t.TempDir(), "k")
	write(w.t, kubeconfig, string(kube.Kubeconfig()))
	config := fmt.Sprintf("clusters:\n- {id: k, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %s}}\n", kubeconfig)
	for _, of := range colliding {
		pod := testbed.NewNamespace(w.t, of.cluster)
		pod.Join(w.mesh, of.address)
		testbed.StartEcho(w.t, testbed.EchoOptions{Name: of.cluster, Namespace: pod, HTTP: []int{8080, 9090}})
		if of.cluster == "k" {
			continue
		}
		consul := testbed.StartConsul(w.t, testbed.ConsulOptions{Name: "consul-" + of.cluster, Datacenter: "dc-" + of.cluster})
		config += fmt.Sprintf("- {id: %s, provider: Consul, network: n1, consul: {address: %q%s}}\n", of.cluster, consul.URL, of.consul)
		for service, other := range map[string]struct {
			clusters string
			port     int
			tags     []string
		}{
			"web": {"b", 8080, []string{"protocol=tcp"}},
			"api": {"b", 9090, nil},
			"pay": {"d", 8080, []string{"protocol=tcp"}},
		} {
			port, tags := 8080, []string(nil)
			if other.clusters == of.cluster {
				port, tags = other.port, other.tags
			}
			registerAt(consul, service+"-1", service, of.address, port, tags...)
		}
	}
	w.hub = startHub(w.t, hubOptions{config: config})
}

// conflictsOf are those of the service that a proxy in shop means by the hostname.
func (h *hub) conflictsOf(t *testing.T, hostname string) string {
	t.Helper()
	var a struct {
		Services struct {
			Nodes []struct {
				Namespace *string
				Conflicts []conflict
			}
		}
	}
	query := fmt.Sprintf(`{ services(first: 10, filter: {hostnames: [%q]}) {
		nodes { namespace conflicts { kind message clusterIDs } } } }`, hostname)
	if err := h.query(query, &a); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, s := range a.Services.Nodes {
		for _, c := range s.Conflicts {
			found = append(found, c.Kind+" "+strings.Join(c.ClusterIDs, " "))
		}
	}
	return strings.Join(found, ", ")
}

// excluded are the endpoints that a proxy does not use, with the reasons.
func (h *hub) excluded(t *testing.T, proxy, name string) []string {
	t.Helper()
	host, port, _ := strings.Cut(name, ":")
	var a struct {
		Explain struct {
			Endpoints []struct {
				Endpoint        endpoint
				Included        bool
				Reason, Message string
			}
		}
	}
	query := fmt.Sprintf(`{ explain(proxy: %q, hostname: %q, port: %s) {
		endpoints { endpoint { clusterID } included reason message } } }`, proxy, host, port)
	if err := h.query(query, &a); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range a.Explain.Endpoints {
		if !e.Included {
			found = append(found, e.Endpoint.ClusterID+": "+e.Reason+": "+e.Message)
		}
	}
	return found
}
