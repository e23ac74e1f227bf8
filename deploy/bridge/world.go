// Package bridge builds what the hub exists for out of real parts: two
// kube-apiservers and a Consul in three networks that have no route to each
// other, workloads behind captured sidecars, a gateway in sni-dnat mode at the
// edge of each network, and the hub that programs them all. The end-to-end tests
// and `make demo` run it.
package bridge

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// Host is the service that runs in every network, and Only is what HostOf makes
// of a service that runs in one of them.
const Host = "web.shop.svc.cluster.local"

// Port is where the services listen.
const Port = 8080

// HostOf names the service that runs in the network of one cluster alone.
func HostOf(cluster string) string { return "only-" + cluster + ".shop.svc.cluster.local" }

// World is the three networks and all that runs there. It ends with the test.
type World struct {
	Hub   *Hub
	Sites []*Site // of c1, c2 and dc1
	Wan   *testbed.Network

	c1, c2 *testbed.Kube
	dc1    *testbed.Consul
}

// Options say how a World is built.
type Options struct {
	Program string            // of the hub: the path of its binary
	Told    func(step string) // is told what is done next; nil: nobody
}

// Start builds a World and returns when every proxy has its configuration. It
// takes about 20 s.
func Start(t testing.TB, o Options) *World {
	t.Helper()
	told := func(format string, args ...any) {
		if o.Told != nil {
			o.Told(fmt.Sprintf(format, args...))
		}
	}
	w := &World{Wan: testbed.NewNetwork(t, "wan", "192.0.2.0/24")}
	told("two kube-apiservers and a Consul, each with a registry of its own")
	w.c1 = testbed.StartKube(t, testbed.KubeOptions{Name: "c1", ServiceCIDR: "10.96.0.0/16"})
	w.c2 = testbed.StartKube(t, testbed.KubeOptions{Name: "c2", ServiceCIDR: "10.97.0.0/16"})
	w.dc1 = testbed.StartConsul(t, testbed.ConsulOptions{Name: "dc1"})
	told("three networks: n1 and n2 have the same addresses, and none has a route to another")
	for i, plan := range plans {
		w.Sites = append(w.Sites, newSite(t, w.Wan, plan, i+1))
	}
	w.c1.Apply(append(kubernetesObjects(w.Sites[0], "10.96.0"), labelledGateway(w.Sites[0]))...)
	w.c1.ApplyStatus(podStatuses(w.Sites[0])...)
	w.c2.Apply(kubernetesObjects(w.Sites[1], "10.97.0")...)
	w.c2.ApplyStatus(podStatuses(w.Sites[1])...)
	registerInConsul(w.dc1, w.Sites[2])
	told("the hub, which attaches the three clusters")
	w.Hub = startHub(t, o.Program, w.config(t))
	w.Hub.Apply(t, meshManifests(w.Sites))
	for _, s := range w.Sites {
		told("%s: a gateway at %s, a workload and a caller, each behind a sidecar that captures its traffic", s.Network, s.Gateway.Address)
		s.startProxies(t, w.Hub)
	}
	told("waiting until every proxy has what the hub built for it")
	w.awaitSync(t)
	return w
}

// Site returns the site of a cluster.
func (w *World) Site(cluster string) *Site {
	for _, s := range w.Sites {
		if s.Cluster == cluster {
			return s
		}
	}
	return nil
}

func (w *World) config(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, kube := range map[string]*testbed.Kube{"c1": w.c1, "c2": w.c2} {
		writeFile(t, filepath.Join(dir, name), string(kube.Kubeconfig()))
	}
	return fmt.Sprintf(`clusters:
- {id: c1, provider: Kubernetes, network: n1, kubernetes: {kubeconfig: %[1]s/c1}}
- {id: c2, provider: Kubernetes, network: n2, kubernetes: {kubeconfig: %[1]s/c2}}
- {id: dc1, provider: Consul, network: n3, consul: {address: %[2]q, datacenter: dc1, hostname: "{{.Service}}.shop.svc.cluster.local"}}
`, dir, w.dc1.URL)
}

// awaitSync waits until every caller gets an answer of the service in its own
// network and of the one in each other.
func (w *World) awaitSync(t testing.TB) {
	t.Helper()
	for _, from := range w.Sites {
		for _, to := range w.Sites {
			testbed.WaitFor(t, time.Minute, fmt.Sprintf("an answer of %s to %s", to.Cluster, from.Cluster), func() error {
				_, err := from.Ask(HostOf(to.Cluster), "/ready")
				return err
			})
		}
	}
}
