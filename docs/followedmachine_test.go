package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
)

const (
	machineAt     = "10.81.0.31"
	hubOfMachines = "10.81.0.5"
)

// TestU69AMachineRegistersAsInTheGuide follows the part of the page about Istio's agent that registers machines, with the agent and istioctl
// unmodified. The hub signs its own certificate and writes the roots, since there is no istiod. istioctl then shows the machine's proxy.
func TestU69AMachineRegistersAsInTheGuide(t *testing.T) {
	t.Parallel()
	const page = "istio-agent.md"
	m := newMachine(t)
	mesh := testbed.NewNetwork(t, "mesh", "10.81.0.0/24")
	m.Join(mesh, hubOfMachines)
	kubeconfig, _ := m.clusterOfWeb(t, "c1", "10.0.0.6", "10.0.0.8")
	m.shim(t, "istioctl", "exec "+installed(t, toolset.Istioctl)+` "$@"`)
	m.installs(t)
	m.withOwn("0.0.0.0:15010", "0.0.0.0:15012")
	m.types("kubectl apply -f deploy/kubernetes/root-configmaps.yaml\nsudo install -m 0640 -o root -g isthmus $KUBECONFIG /etc/isthmus/c1")
	m.writes(t, "clusters.yaml", page, "yaml", "aliases: [Kubernetes]")
	m.writes(t, "debug.yaml", page, "yaml", "debug:")
	m.types(`sed 's|/etc/isthmus/c1|&, rootConfigMap: CREATE|' clusters.yaml | cat - debug.yaml | sudo tee /etc/isthmus/isthmus.yaml
echo 'tls: {names: [hub.example, localhost], clientCA: /etc/isthmus/clients.crt}' | sudo tee -a /etc/isthmus/isthmus.yaml
sudo sed -i -E 's/ --tls-(cert|key|client-ca) [^ ]+//g' /etc/systemd/system/isthmus.service
sudo systemctl daemon-reload
sudo systemctl restart isthmus
export ISTHMUS_TLS_CA=/var/lib/isthmus/root-cert.pem
isthmus describe cluster c1 | grep READY`)
	m.reads(t, page, "## Register machines", "Of the kinds of probes, mind these two:")
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
	m.waits(t, "leaving", func() { agent.Kill() })
	m.types("again '! " + entry + "'")
	m.do(t, true, "KUBECONFIG="+kubeconfig)
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
