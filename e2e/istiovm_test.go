package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// machine is where a workload runs that no cluster has.
const machine = "10.78.0.31"

// machineService is made of the workloads of machines.
const machineService = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ledger, namespace: shop}
spec:
  hosts: [ledger.shop.example]
  addresses: [240.240.7.1]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 9090, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: ledger}}
`

// newMachineFixture has what machines are described by, and the service that is made of them.
func newMachineFixture(t *testing.T, machines string) (*agentFixture, *hub) {
	t.Helper()
	w := newAgentFixture(t, "")
	h := &hub{Hub: w.hub}
	h.change(t, "apply", map[string]any{"manifests": []string{machines, machineService}})
	return w, h
}

// TestU07MachineRegistersItself has a machine behind Istio's own agent, unmodified, that names
// a WorkloadGroup. Pods call it with mutual TLS while its probe succeeds, and the machine is
// gone some time after its agent.
func TestU07MachineRegistersItself(t *testing.T) {
	t.Parallel()
	w, h := newMachineFixture(t, `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: ledger, namespace: shop}
spec:
  metadata: {labels: {app: ledger}}
  template: {serviceAccount: ledger}
  probe: {periodSeconds: 1, httpGet: {port: 9090}}
`)
	client, vm := w.pod("client"), w.machine("ISTIO_META_AUTO_REGISTER_GROUP=ledger")
	client.agent.WaitReady(patience)
	call := func(want int) error {
		answer := client.Get("http://240.240.7.1:9090/", "Host", "ledger.shop.example:9090")
		if answer.Err != nil || answer.Status != want {
			return fmt.Errorf("it answers %d, %w, want %d", answer.Status, answer.Err, want)
		}
		if want == http.StatusOK {
			if got := answer.Echo(t).Header.Get("X-Forwarded-Client-Cert"); !strings.Contains(got, "URI=spiffe://cluster.local/ns/shop/sa/client") {
				return fmt.Errorf("the machine sees the caller %q", got)
			}
		}
		return nil
	}
	becomes := func(when string, status int) {
		t.Helper()
		testbed.WaitFor(t, patience, when, func() error { return call(status) })
	}
	becomes("the machine to be known, and not healthy", http.StatusServiceUnavailable)
	vm.comesAndGoes(t, becomes)
	testbed.WaitFor(t, patience, "the machine to be gone", func() error {
		left, err := h.endpoints("ledger.shop.example")
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %v", left)
		}
		return err
	})
	noPanic(t, w.hub)
}

// TestK78MachineOfAnAppliedEntry has a machine behind Istio's own agent, unmodified, that names an applied WorkloadEntry.
// Pods call it while its probe succeeds and its agent is connected.
func TestK78MachineOfAnAppliedEntry(t *testing.T) {
	t.Parallel()
	w, h := newMachineFixture(t, `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ledger-vm, namespace: shop, annotations: {proxy.istio.io/health-checks-enabled: "true"}}
spec: {address: `+machine+`, labels: {app: ledger}, serviceAccount: ledger}
`)
	client := w.pod("client")
	client.agent.WaitReady(patience)
	becomes := func(when string, status int) {
		t.Helper()
		testbed.WaitFor(t, patience, when, func() error {
			answer := client.Get("http://240.240.7.1:9090/", "Host", "ledger.shop.example:9090")
			if answer.Err != nil || answer.Status != status {
				return fmt.Errorf("it answers %d, %w, want %d", answer.Status, answer.Err, status)
			}
			return nil
		})
	}
	becomes("the machine to be unhealthy without an agent", http.StatusServiceUnavailable)
	vm := w.machine("ISTIO_META_WORKLOAD_ENTRY=ledger-vm")
	vm.comesAndGoes(t, becomes)
	testbed.WaitFor(t, patience, "the machine to be unhealthy without its agent", func() error {
		all, err := h.clusters()
		for _, c := range all {
			for _, p := range c.Problems.Nodes {
				if p.Code == "WORKLOAD_UNHEALTHY" && p.Object == "WorkloadEntry shop/ledger-vm" && strings.Contains(p.Message, "no agent reports") {
					return nil
				}
			}
		}
		return fmt.Errorf("%+v, %w", all, err)
	})
	noPanic(t, w.hub)
}

// comesAndGoes has the application of the machine start, end and start again, and its agent be killed. becomes waits for what callers
// get meanwhile.
func (p *agentPod) comesAndGoes(t *testing.T, becomes func(when string, status int)) {
	t.Helper()
	application := testbed.EchoOptions{Name: "ledger", Namespace: p.Namespace, HTTP: []int{9090}}
	echo := testbed.StartEcho(t, application)
	becomes("an answer of the machine", http.StatusOK)
	echo.Stop()
	becomes("the machine to be unhealthy", http.StatusServiceUnavailable)
	testbed.StartEcho(t, application)
	becomes("an answer again", http.StatusOK)
	p.agent.Kill()
}

// machine runs the agent of a machine whose account is of the cluster; no pod is. The agent names what it is in its
// environment.
func (w *agentFixture) machine(named string, change ...func(*testbed.AgentOptions)) *agentPod {
	w.t.Helper()
	p := &agentPod{Namespace: testbed.NewNamespace(w.t, "vm")}
	o := testbed.AgentOptions{
		Namespace: p.Namespace, Pod: "shop/vm-1", Account: "ledger", Address: machine, Cluster: "Kubernetes",
		Token: w.kube.ServiceAccountToken(testbed.TokenOptions{Namespace: "shop", Account: "ledger", Audience: "istio-ca"}),
		Hub:   w.hub.XDS, Roots: w.hub.CA, Env: []string{named},
		Config: map[string]any{"readinessProbe": map[string]any{"periodSeconds": 1, "httpGet": map[string]any{"port": 9090}}},
	}
	for _, f := range change {
		f(&o)
	}
	p.Join(w.mesh, o.Address)
	p.Capture(testbed.ProxyUID)
	p.agent = testbed.StartAgent(w.t, o)
	return p
}

// TestU55AMachineOutlivesItsToken: Istio's packages for machines have the agent keep its certificates in a folder and show them beside the
// token of its first start, which istioctl makes for an hour. After that hour, an agent that starts again is served by its certificate,
// and has it renewed.
func TestU55AMachineOutlivesItsToken(t *testing.T) {
	t.Parallel()
	w, h := newMachineFixture(t, `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: ledger, namespace: shop}
spec: {metadata: {labels: {app: ledger}}, template: {serviceAccount: ledger}}
`)
	vm := w.machine("ISTIO_META_AUTO_REGISTER_GROUP=ledger", func(o *testbed.AgentOptions) {
		o.Config, o.Machine = nil, true
	})
	served := func(times int) {
		t.Helper()
		testbed.WaitFor(t, patience, fmt.Sprintf("%d connections of the machine", times), func() error {
			log := string(w.hub.Output())
			connected := strings.Count(log, `"proxy connected" node=sidecar~`+machine)
			signed := strings.Count(log, `"a certificate was signed" method=csr workload=spiffe://cluster.local/ns/shop/sa/ledger`)
			found, err := h.endpoints("ledger.shop.example")
			if err == nil && (connected < times || signed < times || len(found) != 1) {
				err = fmt.Errorf("it connected %d times and got %d certificates, and there are %v", connected, signed, found)
			}
			return err
		})
	}
	served(1)
	vm.agent.SetToken(w.kube.ServiceAccountToken(testbed.TokenOptions{
		Namespace: "shop", Account: "ledger", Audience: "istio-ca", Ends: time.Now().Add(-time.Minute),
	}))
	vm.agent.Restart()
	served(2)
	noPanic(t, w.hub)
}

// TestU06AgentsTrustSeveralDomains has a caller with a certificate of another trust domain call
// a pod behind Istio's own agent, which gets the roots of both from the hub.
func TestU06AgentsTrustSeveralDomains(t *testing.T) {
	t.Parallel()
	partner := testbed.NewAuthority(t, "partner")
	file := filepath.Join(t.TempDir(), "partner.pem")
	write(t, file, string(partner.PEM))
	w := newAgentFixture(t, fmt.Sprintf("identity: {bundles: [{trustDomain: partner.example, file: %s}]}\n", file))
	(&hub{Hub: w.hub}).change(t, "apply", map[string]any{"manifests": []string{`
apiVersion: isthmus.dev/v1
kind: MeshSettings
metadata: {name: default}
spec: {trustDomain: cluster.local, trustDomainAliases: [partner.example]}
`}})
	server := w.pod("server", func(o *testbed.AgentOptions) { o.Env = append(o.Env, "PROXY_CONFIG_XDS_AGENT=true") })
	testbed.StartEcho(t, testbed.EchoOptions{Name: "server", Namespace: server.Namespace, HTTP: []int{8080}})
	server.agent.WaitReady(patience)
	caller := testbed.NewNamespace(t, "partner")
	caller.Join(w.mesh, "10.78.0.98")
	const id = "spiffe://partner.example/ns/orders/sa/caller"
	config := partner.TLS(testbed.Subject{Name: "caller", Hosts: []string{id}})
	config.InsecureSkipVerify, config.NextProtos = true, []string{"istio"} // the subject is whom the server trusts
	client := caller.Client(config)
	transport := client.Transport.(*http.Transport)
	transport.ForceAttemptHTTP2, transport.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	testbed.WaitFor(t, patience, "an answer to the partner", func() error {
		body, err := get(t.Context(), client, "https://"+agentPods["server"]+":8080/")
		if err == nil && !strings.Contains(body, id) {
			err = fmt.Errorf("the server sees %s", body)
		}
		return err
	})
	noPanic(t, w.hub)
}
