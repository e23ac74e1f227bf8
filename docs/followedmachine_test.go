package docs

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/kubelet"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

const (
	machineAt     = "10.81.0.31"
	hubOfMachines = "10.81.0.5"
	agentsPage    = "istio-agent.md"
)

// TestU69AMachineRegistersAsInTheGuide follows the part of the page about Istio's agent that registers machines, with the agent and istioctl
// unmodified. The hub signs its own certificate and writes the roots, since there is no istiod. istioctl then shows the machine's proxy.
func TestU69AMachineRegistersAsInTheGuide(t *testing.T) {
	t.Parallel()
	const page = agentsPage
	m := newMachine(t)
	mesh := testbed.NewNetwork(t, "mesh", "10.81.0.0/24")
	m.Join(mesh, hubOfMachines)
	kubeconfig, kube := m.clusterOfWeb(t, "c1", "10.0.0.6", "10.0.0.8")
	m.shim(t, "istioctl", "exec "+installed(t, toolset.Istioctl)+` "$@"`)
	m.installs(t)
	m.servesAgents(t)
	m.reads(t, page, "## Register machines", "Two kinds of probes need care:")
	m.types(`kubectl create namespace istio-system
kubectl create configmap istio -n istio-system --from-literal='mesh=defaultConfig: {discoveryAddress: hub.example:15012}'
again 'kubectl get configmap istio-ca-root-cert -n shop'`)
	m.reads(t, page, "### Settings of a machine", "- It reads the mesh's settings from the ConfigMap `istio` in `istio-system`, and the roots from `istio-ca-root-cert` in the namespace of")
	const entry = "isthmus get workloadentries ledger-" + machineAt + " -n shop -o yaml"
	vm := testbed.NewNamespace(t, "vm")
	vm.Join(mesh, machineAt)
	var agent *testbed.Agent
	m.waits(t, "machine", func() { agent = startMachine(t, vm, filepath.Join(m.dir, "work", "ledger-vm")) })
	m.types(entry + " | grep isthmus.dev/unhealthy\nisthmus get proxies | grep vm-1")
	m.waits(t, "serving", func() {
		testbed.StartEcho(t, testbed.EchoOptions{Name: "ledger", Namespace: vm, HTTP: []int{9090}})
	})
	m.types("again '" + entry + " > entry && ! grep isthmus.dev/unhealthy entry'\nisthmus describe service ledger.shop.example | grep " + machineAt)
	m.types("echo 127.0.0.1 hub.example >> /etc/hosts\nkubectl create serviceaccount default -n istio-system")
	m.reads(t, page, "## Use istioctl", "`istioctl proxy-status POD` compares what the hub sent to a proxy last with what the proxy has:")
	m.types("istioctl proxy-status --xds-address hub.example:15012 | grep vm-1.shop\nistioctl x internal-debug clusterz --xds-address hub.example:15012 | grep c1")
	m.waits(t, "dumping", func() {
		write(t, filepath.Join(m.dir, "work", "config_dump.json"), vm.Get("http://127.0.0.1:15000/config_dump?include_eds").Body)
	})
	m.types("istioctl proxy-status vm-1.shop --file config_dump.json --xds-address hub.example:15012 | grep 'Clusters Match'")
	m.forwardsPorts(t, kube)
	m.waits(t, "leaving", func() { agent.Kill() })
	m.types("again '! " + entry + "'")
	m.do(t, true, "KUBECONFIG="+kubeconfig)
}

// forwardsPorts has the reader use the commands of istioctl that look for pods (U85). The hub is outside of the cluster: a kubelet forwards
// the ports of a pod to it.
func (m *readersMachine) forwardsPorts(t *testing.T, kube *testbed.Kube) {
	t.Helper()
	kubelet.Hub{
		Namespace: "isthmus", Health: 8081, Ports: map[int]string{15012: "127.0.0.1:15012", 8081: "127.0.0.1:8081"},
	}.Run(kubelet.Start(t, m.Namespace, kube))
	m.types(`sudo sed -i 's|sa/default]|sa/default, "spiffe://cluster.local/ns/isthmus/sa/default"]|; s|^debug:|&\n  portForward: true|' \
  /etc/isthmus/isthmus.yaml
sudo systemctl restart isthmus
again 'isthmus get proxies | grep vm-1.*SYNCED'`)
	m.reads(t, agentsPage, "selector `app: istiod` would lead to them. Use another namespace there:", "| page of `x internal-debug` | what it has |")
	m.types("istioctl version -i isthmus | grep 'control plane version'\nistioctl remote-clusters -i isthmus | grep c1\n" +
		"istioctl proxy-status -i isthmus | grep vm-1.shop")
}

// servesAgents has the reader attach the cluster of $KUBECONFIG to the installed hub, let agents reach it at the port that they want, and
// have it sign its own certificate.
func (m *readersMachine) servesAgents(t *testing.T) {
	t.Helper()
	m.withOwn("0.0.0.0:15010", "0.0.0.0:15012")
	m.types("kubectl apply -f deploy/kubernetes/root-configmaps.yaml\nsudo install -m 0640 -o root -g isthmus $KUBECONFIG /etc/isthmus/c1")
	m.writes(t, "clusters.yaml", agentsPage, "yaml", "aliases: [Kubernetes]")
	m.writes(t, "debug.yaml", agentsPage, "yaml", "debug:")
	m.types(`sed 's|/etc/isthmus/c1|&, rootConfigMap: CREATE|' clusters.yaml | cat - debug.yaml | sudo tee /etc/isthmus/isthmus.yaml
echo 'tls: {names: [hub.example, localhost], clientCA: /etc/isthmus/clients.crt}' | sudo tee -a /etc/isthmus/isthmus.yaml
sudo sed -i -E 's/ --tls-(cert|key|client-ca) [^ ]+//g' /etc/systemd/system/isthmus.service
sudo systemctl daemon-reload
sudo systemctl restart isthmus
export ISTHMUS_TLS_CA=/var/lib/isthmus/root-cert.pem
isthmus describe cluster c1 | grep READY`)
}

// TestU84AnAppliedMachineReportsItsHealthAsInTheGuide follows the part of the page about Istio's agent for WorkloadEntries that are applied
// by hand, with the agent unmodified: no endpoint before its agent reports, one while the probe succeeds, none without the agent. A caller
// of another trust domain is refused, and gets an answer by the settings of the page.
func TestU84AnAppliedMachineReportsItsHealthAsInTheGuide(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	mesh := testbed.NewNetwork(t, "mesh", "10.81.0.0/24")
	m.Join(mesh, hubOfMachines)
	kubeconfig, kube := m.clusterOfWeb(t, "c1", "10.0.0.6", "10.0.0.8")
	partner := testbed.NewAuthority(t, "partner")
	write(t, filepath.Join(m.dir, "work", "partner.pem"), partner.PEM)
	m.installs(t)
	m.servesAgents(t)
	m.writes(t, "ledger.yaml", agentsPage, "yaml", "kind: ServiceEntry")
	m.types("isthmus apply -f ledger.yaml")
	m.reads(t, agentsPage, "## Health of applied WorkloadEntries",
		"2. Start the agent with a token of the entry's `serviceAccount` (`default` if it has none), the name of the entry, and a probe:")
	const entry = "isthmus describe cluster hub"
	m.types(entry + " | grep 'no agent reports.*WORKLOAD_UNHEALTHY'")
	vm, caller := testbed.NewNamespace(t, "vm"), testbed.NewNamespace(t, "partner")
	vm.Join(mesh, machineAt)
	caller.Join(mesh, "10.81.0.41")
	vm.Capture(testbed.ProxyUID)
	var agent *testbed.Agent
	m.waits(t, "machine", func() {
		testbed.StartEcho(t, testbed.EchoOptions{Name: "ledger", Namespace: vm, HTTP: []int{9090}})
		agent = startAppliedMachine(t, vm, kube, filepath.Join(m.dir, "lib", "isthmus", "root-cert.pem"))
	})
	m.types("again '" + entry + " > entry && ! grep WORKLOAD_UNHEALTHY entry'\nisthmus describe service ledger.shop.example | grep " + machineAt)
	calls := partnersCall(t, partner, caller)
	m.waits(t, "refusal", func() {
		testbed.WaitFor(t, patience, "the partner to be refused", func() error {
			if err := calls(); err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
				return fmt.Errorf("it gets %w", err)
			}
			return nil
		})
	})
	m.trustsPartner(t)
	m.waits(t, "call", func() { testbed.WaitFor(t, patience, "an answer to the partner", calls) })
	m.waits(t, "leaving", func() { agent.Kill() })
	m.types(entry + " | grep 'no agent reports.*WORKLOAD_UNHEALTHY'")
	m.withOwn("10.9.0.1", machineAt)
	m.do(t, true, "KUBECONFIG="+kubeconfig)
}

// startAppliedMachine starts Istio's agent with the settings that the page has for an applied WorkloadEntry and for several trust domains.
func startAppliedMachine(t *testing.T, at *testbed.Namespace, kube *testbed.Kube, roots string) *testbed.Agent {
	t.Helper()
	o := testbed.AgentOptions{
		Namespace: at, Machine: true, Pod: "shop/vm-1", Account: "ledger", Address: machineAt, Cluster: "Kubernetes",
		Token: kube.ServiceAccountToken(testbed.TokenOptions{Namespace: "shop", Account: "ledger", Audience: "istio-ca"}),
		Roots: []byte(read(t, roots)), Hosts: map[string]string{"hub.example": hubOfMachines},
	}
	for _, block := range blocksOf(read(t, agentsPage), "text") {
		switch {
		case strings.Contains(block, "PROXY_CONFIG_XDS_AGENT"):
			var pod struct {
				Env []struct{ Name, Value string }
			}
			if err := yaml.Unmarshal([]byte(block), &pod); err != nil {
				t.Error(err)
			}
			for _, e := range pod.Env {
				o.Env = append(o.Env, e.Name+"="+e.Value)
			}
		case strings.Contains(block, "ISTIO_META_WORKLOAD_ENTRY"):
			for line := range strings.Lines(block) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				if name != "PROXY_CONFIG" {
					o.Env = append(o.Env, name+"="+value)
				} else if err := yaml.Unmarshal([]byte(value), &o.Config); err != nil {
					t.Error(err)
				}
			}
		}
	}
	return testbed.StartAgent(t, o)
}

// trustsPartner has the reader find that the hub does not have the roots of the other trust domain, as the page about troubleshooting says,
// and add them (U95).
func (m *readersMachine) trustsPartner(t *testing.T) {
	t.Helper()
	m.reads(t, "troubleshooting.md", "5. If the server rejects the client's certificate, check that the hub lists the signing root under the client's trust domain:",
		"## Changes are refused")
	m.types("isthmus ca show > roots\ngrep cluster.local roots\nif grep partner.example roots; then exit 1; fi\nsudo install -m 0644 partner.pem /etc/isthmus/")
	m.writes(t, "partner.yaml", agentsPage, "yaml", "/etc/isthmus/partner.pem")
	m.writes(t, "settings.yaml", agentsPage, "yaml", "trustDomainAliases")
	m.types("cat partner.yaml | sudo tee -a /etc/isthmus/isthmus.yaml\nsudo systemctl restart isthmus\nagain 'isthmus apply -f settings.yaml'")
	m.types("isthmus ca show | grep partner.example")
}

// partnersCall is a call of the machine by a caller of the other trust domain. It fails unless the machine sees who that is.
func partnersCall(t *testing.T, partner *testbed.Authority, from *testbed.Namespace) func() error {
	t.Helper()
	const id = "spiffe://partner.example/ns/orders/sa/caller"
	config := partner.TLS(testbed.Subject{Name: "caller", Hosts: []string{id}})
	config.InsecureSkipVerify, config.NextProtos = true, []string{"istio"} // the subject is whom the machine trusts
	client := from.Client(config)
	transport := client.Transport.(*http.Transport)
	transport.ForceAttemptHTTP2, transport.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	return func() error {
		answer, err := client.Get("https://" + machineAt + ":9090/")
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err == nil && !strings.Contains(string(body), id) {
			err = fmt.Errorf("the machine sees %s", body)
		}
		return err
	}
}

// startMachine starts Istio's agent with the files that istioctl wrote.
func startMachine(t *testing.T, at *testbed.Namespace, folder string) *testbed.Agent {
	t.Helper()
	var mesh struct{ DefaultConfig map[string]any }
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(folder, "mesh.yaml"))), &mesh); err != nil {
		t.Error(err)
	}
	roots, err := os.ReadFile(filepath.Join(folder, "root-cert.pem"))
	if err != nil {
		t.Error(err)
	}
	env := []string{"POD_NAME=vm-1"}
	for line := range strings.Lines(read(t, filepath.Join(folder, "cluster.env"))) {
		env = append(env, strings.ReplaceAll(strings.TrimSpace(line), "'", ""))
	}
	return testbed.StartAgent(t, testbed.AgentOptions{
		Namespace: at, Machine: true, Pod: "shop/vm-1", Account: "ledger", Address: machineAt, Cluster: "Kubernetes",
		Token: read(t, filepath.Join(folder, "istio-token")), Roots: roots, Config: mesh.DefaultConfig, Env: env,
		Hosts: map[string]string{"hub.example": hubOfMachines},
	})
}
