package registries_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a registry whose Run the test writes.
type fake func(ctx context.Context, to registries.Sink) error

func (f fake) Run(ctx context.Context, to registries.Sink) error { return f(ctx, to) }

// says is a registry that says the edit and then waits for its end.
func says(e federation.Edit) fake {
	return func(ctx context.Context, to registries.Sink) error {
		to.Update(e)
		<-ctx.Done()
		return nil
	}
}

// silent is a registry that never hears from its cluster.
func silent(ctx context.Context, _ registries.Sink) error {
	<-ctx.Done()
	return nil
}

func fails(message string) fake {
	return func(context.Context, registries.Sink) error { return fmt.Errorf("%s", message) }
}

// cluster is one whose registries are opened one after the other from the
// list; the last of it serves all further starts.
func cluster(id, fingerprint string, each ...fake) registries.Cluster {
	starts := 0
	return registries.Cluster{
		ID: federation.ClusterID(id), Spec: federation.ClusterSpec{Provider: federation.Mock}, Fingerprint: fingerprint,
		Open: func(federation.Identity) (registries.Registry, error) {
			next := each[min(starts, len(each)-1)]
			starts++
			return next, nil
		},
	}
}

func key(name string) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(name + ".shop.svc.cluster.local"), Namespace: "shop"}
}

// shard has a VIP and endpoints in 10.N.0.0/16.
func shard(n byte, endpoints int) *federation.Shard {
	s := &federation.Shard{
		Ports: []federation.Port{{Number: 80, Protocol: federation.HTTP}},
		VIPs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 0, 1}), 32)},
	}
	for i := range endpoints {
		s.Endpoints = append(s.Endpoints, federation.Endpoint{
			Address: federation.IPAddress(netip.AddrFrom4([4]byte{10, n, 1, byte(i + 1)})),
			Ports:   []federation.EndpointPort{{Number: 8080}},
		})
	}
	return s
}

// full is a whole list: that many services s0, s1… of two endpoints each.
func full(n byte, services int) federation.Edit {
	e := federation.Edit{
		Services:  federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: map[federation.ServiceKey]*federation.Shard{}},
		Workloads: federation.Delta[federation.WorkloadKey, *federation.Workload]{Full: true},
		Problems:  federation.Delta[string, federation.Problem]{Full: true},
		Identity:  &federation.Identity{UID: fmt.Sprintf("uid-%d", n)},
	}
	for i := range services {
		e.Services.Set[key(fmt.Sprintf("s%d", i))] = shard(n, 2)
	}
	return e
}

func set(name string, s *federation.Shard) federation.Edit {
	return federation.Edit{Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key(name): s}}}
}

func gone(name string) federation.Edit {
	return federation.Edit{Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Gone: []federation.ServiceKey{key(name)}}}
}

// history remembers every published snapshot.
type history struct {
	mu  sync.Mutex
	all []*federation.Snapshot
}

func (h *history) Published(s *federation.Snapshot, _ federation.ChangeSet, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, s)
}

func (h *history) snapshots() []*federation.Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*federation.Snapshot(nil), h.all...)
}

// hub is a running supervisor with a real aggregate. It must be made inside a
// synctest bubble.
type hub struct {
	*registries.Supervisor
	*federation.Aggregate
	history *history
	log     *bytes.Buffer
	stop    func()
}

type lockedWriter struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// start runs a supervisor with these clusters.
func start(t *testing.T, dir string, clusters ...registries.Cluster) *hub {
	t.Helper()
	h := &hub{history: &history{}, log: &bytes.Buffer{}}
	h.Aggregate = federation.NewAggregate(h.history)
	h.Supervisor = registries.New(registries.Options{
		Aggregate: h.Aggregate, Dir: dir, Logger: slog.New(slog.NewTextHandler(&lockedWriter{to: h.log}, nil)),
	})
	for _, c := range clusters {
		h.Attach(c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	var once sync.Once
	h.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run said %v, want nil", err)
			}
		})
	}
	synctest.Wait()
	return h
}

// after lets the time pass and everything that is due then happen.
func after(d time.Duration) {
	pass(d)
	synctest.Wait()
}

// pass lets the time of the bubble pass.
func pass(d time.Duration) { <-time.NewTimer(d).C }

func (h *hub) status(t *testing.T, id federation.ClusterID) federation.RegistryStatus {
	t.Helper()
	c, ok := h.Latest().Cluster(id)
	if !ok {
		t.Fatalf("cluster %s is not shown", id)
	}
	return c.Status
}

func (h *hub) wantPhase(t *testing.T, id federation.ClusterID, phase federation.Phase) federation.RegistryStatus {
	t.Helper()
	s := h.status(t, id)
	if s.Phase != phase {
		t.Fatalf("cluster %s is %s (%s), want %s", id, s.Phase, s.Message, phase)
	}
	return s
}

func (h *hub) wantServices(t *testing.T, want int) {
	t.Helper()
	if got := h.Latest().Services().Len(); got != want {
		t.Fatalf("%d services are published, want %d", got, want)
	}
}

func (h *hub) isReady() bool {
	select {
	case <-h.Ready():
		return true
	default:
		return false
	}
}
