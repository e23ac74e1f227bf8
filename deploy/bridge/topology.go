// Package bridge builds what the hub exists for out of real parts: two
// kube-apiservers and a Consul in three networks that have no route to each
// other, workloads behind captured sidecars, gateways in sni-dnat mode at the
// edge of each network, and the hub that programs them all. Every client
// of the hub authenticates. The end-to-end tests and `make demo` run it.
package bridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// Host is the service that runs in every network.
const Host = "web.shop.svc.cluster.local"

// Port is where the services listen.
const Port = 8080

// HostOf names the service that runs in the network of one cluster alone.
func HostOf(cluster string) string { return "only-" + cluster + ".shop.svc.cluster.local" }

// Topology is the three networks and all that runs there. It ends with the test.
type Topology struct {
	Hub   *Hub
	Sites []*Site // of c1, c2 and dc1
	Wan   *testbed.Network

	machines *testbed.Authority // signs for what runs in dc1
}

// Options say how a Topology is built.
type Options struct {
	Program string            // of the hub: the path of its binary
	Told    func(step string) // called with each next step; nil: not called
	Shapes  map[string]Shape  // of the sites, by cluster; default one of each
}

// Shape is how much there is at a site.
type Shape struct {
	Pods     int // of the workload: 1 to 200
	Gateways int // 1 to 3
}

// Start builds a Topology and returns when every proxy has its configuration. It
// takes about 20 s.
func Start(t testing.TB, o Options) *Topology {
	t.Helper()
	told := func(format string, args ...any) {
		if o.Told != nil {
			o.Told(fmt.Sprintf(format, args...))
		}
	}
	w := &Topology{Wan: testbed.NewNetwork(t, "wan", "192.0.2.0/24"), machines: testbed.NewAuthority(t, "machines")}
	told("three networks: n1 and n2 have the same addresses, and none has a route to another")
	for _, plan := range plans {
		w.Sites = append(w.Sites, newSite(t, w.Wan, plan.shaped(o.Shapes)))
	}
	told("in each a control plane: two kube-apiservers and a Consul")
	for _, s := range w.Sites {
		s.startControl(t)
	}
	told("the hub, which attaches the three clusters")
	w.Hub = startHub(t, w, o.Program)
	for _, s := range w.Sites {
		w.attach(t, s)
	}
	w.Hub.Apply(t, meshManifests(w.Sites))
	for _, s := range w.Sites {
		told("%s: gateways at %s; a workload and a caller, each behind a sidecar that captures its traffic",
			s.Network, strings.Join(s.outsides(len(s.Gateways)), ", "))
		w.startProxies(t, s)
	}
	told("waiting until every proxy has what the hub built for it")
	w.awaitSync(t)
	return w
}

// Site returns the site of a cluster.
func (w *Topology) Site(cluster string) *Site {
	for _, s := range w.Sites {
		if s.Cluster == cluster {
			return s
		}
	}
	return nil
}

// awaitSync waits until every proxy is live and every caller gets an answer of the
// service in its own network and of the one in each other.
func (w *Topology) awaitSync(t testing.TB) {
	t.Helper()
	for _, s := range w.Sites {
		for _, p := range s.proxies() {
			p.Envoy.WaitReady(30 * time.Second)
		}
	}
	for _, from := range w.Sites {
		for _, to := range w.Sites {
			testbed.WaitFor(t, time.Minute, fmt.Sprintf("an answer of %s to %s", to.Cluster, from.Cluster), func() error {
				_, err := from.Ask(HostOf(to.Cluster), "/ready")
				return err
			})
		}
	}
}
