package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed"
)

// probed is a machine whose group has a probe.
type probed struct {
	probe string // of the WorkloadGroup, beside the period
	// start has the probe of the machine succeed until the function that it returns is called.
	start func(t *testing.T, at *testbed.Namespace) (stop func())
}

// TestU56ProbesOfEachKind has machines start Istio's own agent, unmodified, with the files that istioctl writes for a
// WorkloadGroup, as the guide says. Each gets requests only while the probe of its group succeeds.
func TestU56ProbesOfEachKind(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(testbed.ShortDir(t), "ready")
	machines := map[string]probed{
		"10.78.0.31": {"exec: {command: [test, -f, " + ready + "]}", func(t *testing.T, _ *testbed.Namespace) func() {
			write(t, ready, "")
			return func() { _ = os.Remove(ready) }
		}},
		"10.78.0.32": {"tcpSocket: {host: 127.0.0.1, port: 9092}", func(t *testing.T, at *testbed.Namespace) func() { return listen(t, at, 9092).stop }},
		"10.78.0.33": {"grpc: {port: 9093, service: ledger}", func(t *testing.T, at *testbed.Namespace) func() {
			l := listen(t, at, 9093)
			server, says := grpc.NewServer(), health.NewServer()
			says.SetServingStatus("ledger", healthv1.HealthCheckResponse_SERVING)
			healthv1.RegisterHealthServer(server, says)
			go func() { _ = server.Serve(l) }()
			return server.Stop
		}},
	}
	w := newAgentFixture(t, "")
	h := &hub{Hub: w.hub}
	w.kube.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata: {mesh: \"{}\"}\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ledger, namespace: shop}\n")
	w.kube.Apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio-ca-root-cert, namespace: shop}\ndata: {root-cert.pem: %q}\n", w.hub.CA))
	addresses := slices.Sorted(maps.Keys(machines))
	started := map[string]*agentPod{}
	for i, address := range addresses {
		group := fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: ledger-%d, namespace: shop}
spec:
  metadata: {labels: {app: ledger}}
  template: {serviceAccount: ledger}
  probe: {periodSeconds: 1, %s}
`, i, machines[address].probe)
		h.change(t, "apply", map[string]any{"manifests": []string{group, machineService}})
		started[address] = w.machineOf(group, address)
	}
	healthy := func(when string, want ...string) {
		t.Helper()
		testbed.WaitFor(t, patience, when, func() error { return h.healthy("ledger.shop.example", addresses, want) })
	}
	healthy("all machines, and none healthy")
	stops := make([]func(), len(addresses))
	for i, address := range addresses {
		stops[i] = machines[address].start(t, started[address].Namespace)
		healthy(address+" to be healthy, too", addresses[:i+1]...)
	}
	for i, address := range addresses {
		stops[i]()
		healthy(address+" to be unhealthy, too", addresses[i+1:]...)
	}
	noPanic(t, w.hub)
}

// machineOf starts the agent of a machine with what istioctl writes for its group.
func (w *agentFixture) machineOf(group, address string) *agentPod {
	w.t.Helper()
	dir := w.t.TempDir()
	write(w.t, filepath.Join(dir, "group.yaml"), group)
	if said, err := testbed.IstioctlOf(w.t, w.at, w.kube.Kubeconfig(), "x", "workload", "entry", "configure", "-f",
		filepath.Join(dir, "group.yaml"), "-o", dir, "--clusterID", "Kubernetes", "--autoregister"); err != nil {
		w.t.Fatalf("%v: %s", err, said)
	}
	var mesh struct{ DefaultConfig map[string]any }
	if err := yaml.Unmarshal([]byte(read(w.t, filepath.Join(dir, "mesh.yaml"))), &mesh); err != nil {
		w.t.Fatal(err)
	}
	name := "vm-" + address[len(address)-1:]
	return w.machine("POD_NAME="+name, func(o *testbed.AgentOptions) {
		o.Machine, o.Pod = true, "shop/"+name
		o.Address, o.Config = address, mesh.DefaultConfig
		o.Token = read(w.t, filepath.Join(dir, "istio-token"))
		o.Roots = []byte(read(w.t, filepath.Join(dir, "root-cert.pem")))
		for line := range strings.Lines(read(w.t, filepath.Join(dir, "cluster.env"))) {
			o.Env = append(o.Env, strings.ReplaceAll(strings.TrimSpace(line), "'", ""))
		}
	})
}

// healthy is an error unless the service has all these endpoints, and just some of them are healthy.
func (h *hub) healthy(host string, all, healthy []string) error {
	var a struct {
		Service *struct {
			Endpoints struct {
				Nodes []struct{ Address, Health string }
			}
		}
	}
	err := h.query(fmt.Sprintf(`{ service(hostname: %q) { endpoints(first: 100) { nodes { address health } } } }`, host), &a)
	if err != nil || a.Service == nil {
		return cmp.Or(err, errors.New("there is no service"))
	}
	var found, well []string
	for _, e := range a.Service.Endpoints.Nodes {
		found = append(found, e.Address)
		if e.Health == "HEALTHY" {
			well = append(well, e.Address)
		}
	}
	slices.Sort(found)
	slices.Sort(well)
	if !slices.Equal(found, all) || !slices.Equal(well, healthy) {
		return fmt.Errorf("of %v, %v are healthy", found, well)
	}
	return nil
}

// listener is at a port of a network namespace.
type listener struct{ net.Listener }

func listen(t *testing.T, at *testbed.Namespace, port int) listener {
	t.Helper()
	l, err := at.Listen(fmt.Sprintf("0.0.0.0:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return listener{l}
}

func (l listener) stop() { _ = l.Close() }

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
