package registries_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silent is a registry that never gets anything from its cluster.
func silent(ctx context.Context, _ registries.Sink) error {
	<-ctx.Done()
	return nil
}

func fails(message string) registrytest.Fake {
	return func(context.Context, registries.Sink) error { return fmt.Errorf("%s", message) }
}

// cluster is one whose registries are opened one after the other from the
// list; the last of it serves all further starts.
func cluster(id, fingerprint string, each ...registrytest.Fake) registries.Cluster {
	starts := 0
	return registries.Cluster{
		ID: federation.ClusterID(id), Spec: federation.ClusterSpec{Provider: federation.Mock}, Fingerprint: fingerprint,
		Open: func(federation.ClusterIdentity) (registries.Registry, error) {
			next := each[min(starts, len(each)-1)]
			starts++
			return next, nil
		},
	}
}

func set(name string, s *federation.Shard) federation.Edit {
	return federation.Edit{Services: federation.Delta[federation.ServiceKey,
		*federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{registrytest.Key(name): s}}}
}

func gone(name string) federation.Edit {
	return federation.Edit{Services: federation.Delta[federation.ServiceKey,
		*federation.Shard]{Gone: []federation.ServiceKey{registrytest.Key(name)}}}
}

// hub is a running supervisor with a real aggregate. It must be made inside a
// synctest bubble.
type hub struct {
	*registries.Supervisor
	*federation.Aggregate
	history *registrytest.History
	log     *testbed.LogText
	stop    func()
}

// start runs a supervisor with these clusters.
func start(t *testing.T, dir string, clusters ...registries.Cluster) *hub {
	t.Helper()
	h := &hub{history: &registrytest.History{}, log: &testbed.LogText{}}
	h.Aggregate = federation.NewAggregate(h.history)
	h.Supervisor = registries.New(registries.Options{
		Aggregate: h.Aggregate, Dir: dir, Logger: slog.New(slog.NewTextHandler(h.log, nil)),
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
