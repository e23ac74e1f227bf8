package xds

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/xdstest"
)

// proxyAt is a sidecar at an address of its own.
func proxyAt(n int) *corev3.Node {
	p := node("")
	p.Id = fmt.Sprintf("sidecar~10.9.0.%d~web-%d.shop~shop.svc.cluster.local", n, n)
	return p
}

// podAt is the workload of proxyAt.
func podAt(n int, locality string) federation.Edit {
	var e federation.Edit
	e.Workloads.Set = map[federation.WorkloadKey]*federation.Workload{{Namespace: "shop", Name: fmt.Sprint("web-", n)}: {
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 9, 0, byte(n)})}, Locality: federation.Locality{Region: locality},
	}}
	return e
}

// TestR61ViewsAreDerivedWhenWhatTheyReadChanges: a version that changes nothing of
// which a proxy's view depends derives no view, whether a registry knows the
// proxies or not; a changed workload derives that of its own proxy.
func TestR61ViewsAreDerivedWhenWhatTheyReadChanges(t *testing.T) {
	const proxies, known = 16, 8
	var derived atomic.Int64
	made := envoyBuilder
	made.view = func(n envoy.Node, r *federation.Reader) envoy.View {
		derived.Add(1)
		return envoy.ViewOf(n, r)
	}
	h := newHub(t, func(o *Options) { o.builder = &made })
	h.set(service("web", 1))
	for n := range known {
		h.writer.Update(podAt(n, "here"))
	}
	var clients []client
	for n := range proxies {
		c := h.client(xdstest.Options{Delta: true, Node: proxyAt(n)})
		c.get(xdstest.Request{Type: xdstest.CDS})
		clients = append(clients, c)
	}
	everybodyGets := func(name string) int64 {
		before := derived.Load()
		h.set(service(name, 1))
		for _, c := range clients {
			c.until(cluster(name))
		}
		return derived.Load() - before
	}
	everybodyGets("first")
	for i := range 5 {
		if n := everybodyGets(fmt.Sprint("service-", i)); n > 0 {
			t.Errorf("a new service derives %d views of %d proxies", n, proxies)
		}
	}
	before := derived.Load()
	h.writer.Update(podAt(0, "elsewhere"))
	everybodyGets("after-one-workload")
	if n := derived.Load() - before; n != 1 {
		t.Errorf("one changed workload derives %d views, want that of its own proxy", n)
	}
}

// countedListeners is a group of listeners that counts how many are looked at.
type countedListeners struct {
	source
	resources map[string]*resource
	log       changeLog
	version   uint64
	looked    int
}

func (c *countedListeners) sync(*federation.Snapshot) uint64 { return c.version }

func (c *countedListeners) get(name string) *resource {
	c.looked++
	return c.resources[name]
}

func (c *countedListeners) list() []string { return slices.Collect(maps.Keys(c.resources)) }

func (c *countedListeners) since(version uint64) ([]logEntry, uint64, bool) {
	changed, ok := c.log.since(version)
	return changed, c.version, ok
}

// set has the listener refer to the secret.
func (c *countedListeners) set(listener, secret string) {
	c.version++
	c.resources[listener] = &resource{refs: references{secrets: []string{secret}}}
	c.log.add(c.version, listener)
}

// TestR61AGatewayLooksAtListenersThatChanged, however many there are.
func TestR61AGatewayLooksAtListenersThatChanged(t *testing.T) {
	for _, count := range []int{10, 1000} {
		l := &countedListeners{resources: map[string]*resource{}}
		for i := range count {
			l.set(fmt.Sprint("listener-", i), fmt.Sprintf("file-root:/certs/%d.pem", i))
		}
		s := newSecretSource(envoy.Node{}, "")
		s.read([]source{l}, "")
		s.sync(nil)
		if len(s.known) != count || l.looked < count {
			t.Fatalf("%d secrets of %d listeners are known, %d were looked at", len(s.known), count, l.looked)
		}
		l.looked = 0
		s.sync(nil)
		if l.looked > 0 {
			t.Errorf("a version without a change looks at %d of %d listeners", l.looked, count)
		}
		l.set("listener-3", "file-root:/certs/other.pem")
		s.sync(nil)
		if l.looked != 1 || s.known["file-root:/certs/other.pem"] == nil || s.known["file-root:/certs/3.pem"] != nil {
			t.Errorf("one changed listener looks at %d of %d", l.looked, count)
		}
	}
}
