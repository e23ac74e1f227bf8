package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/registrytest"
)

// rig is a real Consul behind a proxy that can cut the link.
type rig struct {
	*testbed.Consul
	proxy   *testbed.Proxy
	options Options
	mu      sync.Mutex
	counts  map[string]int
}

// startRig runs a Consul; the registry reaches it through the proxy.
func startRig(t testing.TB, how testbed.ConsulOptions, o Options) *rig {
	t.Helper()
	r := &rig{Consul: testbed.StartConsul(t, how), counts: map[string]int{}}
	r.proxy = testbed.StartProxy(t, r.Address)
	o.Cluster = "c1"
	o.Address = r.URL[:len(r.URL)-len(r.Address)] + r.proxy.Addr()
	o.Count = func(kind string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.counts[kind]++
	}
	r.options = o
	return r
}

// restored runs a test that restores snapshots, with a new Consul when one does not
// end its own restore. Consul 1.22 swaps its state under one lock and refreshes its
// topics under another, which a subscriber takes in the other order; when they meet,
// nothing is applied any more until the agent is started again.
func restored(t *testing.T, test func(t *testing.T) (ended bool)) {
	t.Helper()
	for range 3 {
		if test(t) {
			return
		}
		t.Log("Consul did not end its restore: once more with a new Consul")
	}
	t.Fatal("three Consuls did not end a restore")
}

// restore puts a snapshot back and reports whether Consul ended that before the
// administrator's patience.
func (r *rig) restore(t *testing.T, snapshot []byte) (ended bool) {
	t.Helper()
	a := r.Do(http.MethodPut, "/v1/snapshot", snapshot)
	if errors.Is(a.Err, context.DeadlineExceeded) {
		return false
	}
	if a.Err != nil || a.Status != http.StatusOK {
		t.Fatalf("restoring a snapshot: %d %v", a.Status, a.Err)
	}
	return true
}

// asked is how many requests of the kind were sent.
func (r *rig) asked(kinds ...string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, kind := range kinds {
		n += r.counts[kind]
	}
	return n
}

func (r *rig) Run(ctx context.Context, to registrytest.Sink) error {
	registry, err := New(r.options)
	if err != nil {
		return err
	}
	return registry.Run(ctx, to)
}

func (r *rig) Key(name string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(name + ".service.consul")}
}

func (r *rig) Cut(testing.TB) {
	r.proxy.Refuse()
	r.proxy.Reset()
}

func (r *rig) Mend(testing.TB) { r.proxy.Pass() }

// registered is one instance as the catalog takes it; extra fields win.
func registered(name, id, address string, port int, extra ...map[string]any) map[string]any {
	service := map[string]any{"ID": id, "Service": name, "Address": address, "Port": port}
	for _, e := range extra {
		for k, v := range e {
			service[k] = v
		}
	}
	return map[string]any{"Node": "n1", "Address": "10.20.30.99", "Service": service}
}

func (r *rig) register(name, id, address string, port int, extra ...map[string]any) {
	r.Put("/v1/catalog/register", registered(name, id, address, port, extra...))
}

func (r *rig) deregister(id string) {
	r.Put("/v1/catalog/deregister", map[string]any{"Node": "n1", "ServiceID": id})
}

// instances are the IDs and addresses that the catalog has for the service.
func (r *rig) instances(name string) map[string]string {
	var entries []struct{ ServiceID, ServiceAddress string }
	r.Get("/v1/catalog/service/"+name, &entries)
	out := map[string]string{}
	for _, e := range entries {
		out[e.ServiceID] = e.ServiceAddress
	}
	return out
}

func (r *rig) Apply(t testing.TB, s registrytest.Service) {
	t.Helper()
	wanted := map[string]bool{}
	for _, address := range s.Endpoints {
		wanted[id(s.Name, address)] = true
		r.register(s.Name, id(s.Name, address), address.String(), int(s.Port))
	}
	for old := range r.instances(s.Name) {
		if !wanted[old] {
			r.deregister(old)
		}
	}
}

func id(name string, address netip.Addr) string { return name + "-" + address.String() }

func (r *rig) Delete(t testing.TB, name string) {
	t.Helper()
	r.Apply(t, registrytest.Service{Name: name})
}

// fill registers services NAME-000 to NAME-(n-1) with one instance each.
func (r *rig) fill(name string, n int) {
	for i := range n {
		r.register(numbered(name, i), numbered(name, i), fmt.Sprintf("10.20.%d.%d", i/250, i%250+1), 8080)
	}
}

func numbered(name string, i int) string { return fmt.Sprintf("%s-%03d", name, i) }

// revoke deletes a token.
func (r *rig) revoke(t testing.TB, accessor string) {
	t.Helper()
	if a := r.Do(http.MethodDelete, "/v1/acl/token/"+accessor, nil); a.Err != nil || a.Status != http.StatusOK {
		t.Fatalf("deleting a token: %d %v", a.Status, a.Err)
	}
}

// staleBy waits until the registry is STALE for a reason with that word. A machine
// that stops may bring another reason first.
func staleBy(t *testing.T, recorder *registrytest.Recorder, word string) registrytest.View {
	t.Helper()
	return recorder.Wait(t, "STALE because of "+word, func(v registrytest.View) bool {
		return v.Status.Phase == federation.Stale && strings.Contains(v.Status.Message, word)
	})
}

// isUnanswered reports whether no answer came for seconds. A registry is right to report that
// when the machine stops.
func isUnanswered(s federation.RegistryStatus) bool {
	return s.Phase == federation.Stale && strings.Contains(s.Message, "no answer within")
}

// stopped reports whether the machine seems to have stopped for seconds: then the registry
// reads all again.
func stopped(recorder *registrytest.Recorder) bool {
	return slices.ContainsFunc(recorder.Statuses(), isUnanswered)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	registrytest.Suite(t, startRig(t, testbed.ConsulOptions{Persistent: true}, Options{}))
}
