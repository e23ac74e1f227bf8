package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// wrongSecret is the credential that nobody knows, wherever one is wrong.
const wrongSecret = "5e0c8a44-0bad-4bad-8bad-c0ffeec0ffee"

// badInput is one healthy Kubernetes cluster, one Consul datacenter that is
// well but has the strangest instances, and trouble of every kind beside them.
type badInput struct {
	c1     *testbed.Kube
	dc1    *testbed.Consul
	silent *testbed.Proxy // A black hole in front of c1.
	dir    string         // Of kubeconfigs and tokens.
	canary string         // What the exec plugin would make.
	hub    *hub
}

func newBadInput(t *testing.T) *badInput {
	w := &badInput{dir: t.TempDir()}
	w.canary = filepath.Join(w.dir, "canary")
	w.c1 = testbed.StartKube(t, testbed.KubeOptions{Name: "c1"})
	w.dc1 = testbed.StartConsul(t, testbed.ConsulOptions{Name: "dc1", ACL: true})
	w.silent = testbed.StartProxy(t, w.c1.Address)
	w.silent.Blackhole()
	w.c1.Apply(
		kubeService("shop/web", "10.96.0.10"), slice(pods["c1"]),
		kubeSlice("shop/web-port", "10.77.0.31", 70000),
		kubeSlice("shop/web-metadata", "100.100.100.200", 8080),
		kubeSlice("shop/web-zero", "10.77.0.01", 8080),
		unnamedPort,
	)
	w.register("web-1", "web", pods["dc1"], 8080)
	w.register("odd-good", "odd", "10.77.0.41", 8080)
	w.register("odd-port", "odd", "10.77.0.42", 70000)
	w.register("odd-metadata", "odd", "100.100.100.200", 8080)
	w.register("odd-zero", "odd", "10.77.0.01", 8080)
	w.register("plain-1", "plain", "10.77.0.43", 9090)
	return w
}

// unnamedPort is a Service whose only port has no name; Consul has another.
const unnamedPort = `apiVersion: v1
kind: Service
metadata:
  name: plain
  namespace: shop
spec:
  clusterIP: 10.96.0.20
  ports:
  - port: 80
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: plain-1
  namespace: shop
  labels:
    kubernetes.io/service-name: plain
addressType: IPv4
ports:
- name: ""
  port: 8081
  protocol: TCP
endpoints:
- addresses:
  - 10.77.0.33
`

func (w *badInput) register(id, service, address string, port int) {
	w.dc1.Put("/v1/catalog/register", map[string]any{
		"Node": "vm-" + id, "Address": "10.77.0.99",
		"Service": map[string]any{"ID": id, "Service": service, "Address": address, "Port": port},
	})
}

func (w *badInput) config(t *testing.T) string {
	reader, _ := w.dc1.NewToken(`service_prefix "" { policy = "read" } node_prefix "" { policy = "read" } agent_prefix "" { policy = "read" }`)
	blind, _ := w.dc1.NewToken(`key_prefix "nothing" { policy = "read" }`)
	stranger := w.c1.Admin
	stranger.Cert, stranger.Key, stranger.Token = nil, nil, wrongSecret
	silent := w.c1.Admin
	silent.URL = "https://" + w.silent.Addr()
	plugin := w.c1.Admin
	plugin.Cert, plugin.Key = nil, nil
	for name, content := range map[string]string{
		"c1":       string(w.c1.Kubeconfig()),
		"silent":   string(silent.Kubeconfig()),
		"stranger": string(stranger.Kubeconfig()),
		"exec": string(plugin.Kubeconfig()) + fmt.Sprintf(
			"    exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [%q], interactiveMode: Never}\n", w.canary),
		"broken": "apiVersion: v1\nkind: Config\nclusters: {name: [\nusers: token " + wrongSecret + "\n",
		"reader": reader, "wrong": wrongSecret, "blind": blind,
	} {
		write(t, filepath.Join(w.dir, name), content)
	}
	return fmt.Sprintf(`clusters:
- {id: c1, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %[1]s/c1}}
- {id: exec, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %[1]s/exec}}
- {id: broken, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %[1]s/broken}}
- {id: missing, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %[1]s/missing}}
- {id: silent, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %[1]s/silent}}
- {id: stranger, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %[1]s/stranger}}
- {id: dc1, provider: Consul, network: n2, consul: {address: %[2]q, datacenter: dc1, tokenFile: %[1]s/reader, hostname: "{{.Service}}.shop.svc.cluster.local"}}
- {id: dc1-wrong, provider: Consul, network: n2, consul: {address: %[2]q, datacenter: dc1, tokenFile: %[1]s/wrong}}
- {id: dc1-blind, provider: Consul, network: n2, consul: {address: %[2]q, datacenter: dc1, tokenFile: %[1]s/blind}}
- {id: c1, provider: Mock, network: n3}
`, w.dir, w.dc1.URL)
}

// TestBadInput is one hub with all bad input at once: each is named, and none
// of it matters to the rest.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newBadInput(t)
	config := w.config(t)
	binary.Path(t)
	started := time.Now()
	w.hub = startHub(t, hubOptions{config: config, early: true})
	t.Run("ready after the grace of the dead cluster", func(t *testing.T) {
		testbed.WaitFor(t, patience, "ready", func() error { return w.hub.Ready(t.Context()) })
		if took := time.Since(started); took < 10*time.Second {
			t.Errorf("the hub was ready after %s; the silent cluster has a grace of 10 s", took)
		}
	})
	t.Run("status of each cluster", func(t *testing.T) { testPhases(t, w) })
	t.Run("impossible ports and addresses", func(t *testing.T) { testProblems(t, w) })
	t.Run("addresses that no policy allows", func(t *testing.T) { testRefusals(t, w) })
	t.Run("healthy services", func(t *testing.T) { testHealthy(t, w) })
	t.Run("nothing was executed", func(t *testing.T) {
		if _, err := os.Stat(w.canary); err == nil {
			t.Error("the hub ran the kubeconfig's exec plugin")
		}
	})
	t.Run("no secret is revealed", func(t *testing.T) { testSecrets(t, w) })
}

func testPhases(t *testing.T, w *badInput) {
	for id, want := range map[string]struct {
		phase string
		says  []string
	}{
		"c1":        {"READY", nil},
		"dc1":       {"READY", nil},
		"exec":      {"FAILED", []string{"users[0].user.exec", w.dir + "/exec"}},
		"broken":    {"FAILED", []string{w.dir + "/broken", "line"}},
		"missing":   {"FAILED", []string{w.dir + "/missing"}},
		"silent":    {"STALE", []string{w.silent.Addr()}},
		"stranger":  {"FAILED", []string{"credentials"}},
		"dc1-wrong": {"FAILED", []string{"token"}},
		"dc1-blind": {"FAILED", []string{"token"}},
	} {
		testbed.WaitFor(t, patience, id+" to be "+want.phase, func() error { return w.hub.inPhase(id, want.phase) })
		_, message, err := w.hub.phase(id)
		if err != nil {
			t.Error(err)
		}
		for _, text := range want.says {
			if !strings.Contains(message, text) {
				t.Errorf("%s: the message %q does not name %q", id, message, text)
			}
		}
	}
}

// testProblems wants each to be named by object, field and value.
func testProblems(t *testing.T, w *badInput) {
	for _, want := range []struct{ cluster, object, field, value string }{
		{"c1", "shop/web-port", "ports[0].port", "70000"},
		{"c1", "shop/web-zero", "endpoints[0].addresses[0]", "10.77.0.01"},
		{"dc1", "odd-port", "Port", "70000"},
		{"dc1", "odd-zero", "Address", "10.77.0.01"},
		{"c1", "c1", "id", "c1"},
	} {
		c, err := w.hub.cluster(want.cluster)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(c.Problems.Nodes, func(p problem) bool {
			return strings.Contains(p.Object, want.object) && strings.Contains(p.Field, want.field) &&
				strings.Contains(p.Message, want.value) && p.Code != ""
		}) {
			t.Errorf("%s: no problem names %s, %s and %s: %+v", want.cluster, want.object, want.field, want.value, c.Problems.Nodes)
		}
	}
}

// testRefusals wants what the address policy refuses to be a conflict of its
// service, with the cluster that said it.
func testRefusals(t *testing.T, w *badInput) {
	for host, cluster := range map[string]string{webHost: "c1", "odd.shop.svc.cluster.local": "dc1"} {
		s, err := w.hub.service(host)
		if err != nil || s == nil {
			t.Errorf("service %s: %v", host, err)
			continue
		}
		if !slices.ContainsFunc(s.Conflicts, func(c conflict) bool {
			return c.Kind == "ADDRESS_REFUSED" && strings.Contains(c.Message, "100.100.100.200") && slices.Contains(c.ClusterIDs, cluster)
		}) {
			t.Errorf("%s: no conflict names 100.100.100.200 of %s: %+v", host, cluster, s.Conflicts)
		}
	}
}

func testHealthy(t *testing.T, w *badInput) {
	for host, want := range map[string][]string{
		webHost:                        {pods["c1"] + "@c1 8080 9000", "10.77.0.31@c1 9000", pods["dc1"] + "@dc1 8080"},
		"odd.shop.svc.cluster.local":   {"10.77.0.41@dc1 8080"},
		"plain.shop.svc.cluster.local": {"10.77.0.33@c1 8081", "10.77.0.43@dc1 9090"},
	} {
		s, err := w.hub.service(host)
		if err != nil || s == nil {
			t.Errorf("service %s: %v", host, err)
			continue
		}
		found := map[string]bool{}
		for _, e := range s.Endpoints.Nodes {
			text := e.Address + "@" + e.ClusterID
			for _, p := range e.Ports {
				text += fmt.Sprintf(" %d", p.Number)
			}
			found[text] = true
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("%s has the endpoints %q, want %q", host, got, want)
		}
	}
	// Each cluster has one port, which needs no name; merged they are two.
	s, err := w.hub.service("plain.shop.svc.cluster.local")
	if err != nil || s == nil || len(s.Ports) != 2 || s.Ports[0].Number != 80 || s.Ports[1].Number != 9090 ||
		!slices.Equal(s.Ports[0].ClusterIDs, []string{"c1"}) || !slices.Equal(s.Ports[1].ClusterIDs, []string{"dc1"}) {
		t.Errorf("plain is %+v, %v; want port 80 of c1 and 9090 of dc1", s, err)
	}
	if s, err := w.hub.service("hello.default.svc.cluster.local"); err != nil || s != nil {
		t.Errorf("the second cluster of ID c1 is served: %+v, %v", s, err)
	}
}

func testSecrets(t *testing.T, w *badInput) {
	clusters,
		err := w.hub.operate(`{ clusters(first: 20) { nodes { clusterID status { message } problems(first: 100) { nodes { object field message } } } } }`, nil)
	if err != nil {
		t.Fatal(err)
	}
	services,
		err := w.hub.operate(`{ services(first: 20) { nodes { hostname ports { name } endpoints(first: 100) { nodes { address labels { key value } } } } } }`, nil)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := get(t.Context(), w.hub.Plain, w.hub.Health+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := filepath.Glob(w.dir + "/*")
	if err != nil || len(tokens) == 0 {
		t.Fatal(tokens, err)
	}
	block, _ := pem.Decode(w.c1.Admin.Key)
	secrets := []string{
		wrongSecret, w.dc1.Token, base64.StdEncoding.EncodeToString(w.c1.Admin.Key)[60:100],
		base64.StdEncoding.EncodeToString(block.Bytes)[20:60],
	}
	for _, name := range []string{"reader", "blind"} {
		token, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, string(token))
	}
	for where, text := range map[string][]byte{
		"output": w.hub.Output(), "clusters": clusters, "services": services,
		"metrics": []byte(metrics),
	} {
		if len(text) == 0 {
			t.Errorf("%s: nothing to search", where)
		}
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s: a secret is revealed: %s", where, secret)
			}
		}
	}
}
