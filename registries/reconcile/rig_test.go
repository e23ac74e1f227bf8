package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is one of that many services; n is who it is.
func cluster(id, fingerprint string, n byte, services int) Claim {
	return claimOf(id, fingerprint, registrytest.Says(registrytest.Full(n, services)))
}

func claimOf(id, fingerprint string, run registrytest.Fake) Claim {
	return Claim{Cluster: registries.Cluster{
		ID: federation.ClusterID(id), Spec: federation.ClusterSpec{Provider: federation.Kubernetes}, Fingerprint: fingerprint,
		Open: func(federation.ClusterIdentity) (registries.Registry, error) { return run, nil },
	}}
}

// proven is the claim with a registry that reads only the cluster that is known under
// its ID.
func (c Claim) proven() Claim {
	open := c.Open
	c.Open = func(known federation.ClusterIdentity) (registries.Registry, error) {
		r, err := open(known)
		return proving{known, r}, err
	}
	return c
}

type proving struct {
	known federation.ClusterIdentity
	of    registries.Registry
}

func (p proving) Run(ctx context.Context, to registries.Sink) error {
	return p.of.Run(ctx, provingSink{to, p.known})
}

type provingSink struct {
	registries.Sink
	known federation.ClusterIdentity
}

func (p provingSink) Update(e federation.Edit) {
	if p.known.UID != "" && e.Identity != nil && e.Identity.UID != p.known.UID {
		p.Status(federation.RegistryStatus{Phase: federation.Held, Message: "another cluster answers"})
		return
	}
	p.Sink.Update(e)
}

type noMetrics struct{}

func (noMetrics) Remotes(federation.ClusterID, string, int)      {}
func (noMetrics) RemotesUnreadable(federation.ClusterID, string) {}

// hub is a running Reconciler with a real Supervisor and a real Aggregate.
type hub struct {
	*Reconciler
	*federation.Aggregate
	supervisor *registries.Supervisor
	history    registrytest.History
	attached   chan struct{}
	stop       func()
}

func start(t *testing.T, first Start) *hub {
	t.Helper()
	h := &hub{attached: make(chan struct{})}
	h.Aggregate = federation.NewAggregate(&h.history)
	h.supervisor = registries.New(registries.Options{Aggregate: h.Aggregate, Attached: h.attached})
	h.Reconciler = New(Options{
		Hub: "hub", Snapshots: h.Aggregate, Attached: h.attached, Metrics: noMetrics{}, Logger: slog.New(slog.DiscardHandler),
	})
	if err := h.Start(h.supervisor, first); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = h.supervisor.Run(ctx) })
	running.Go(func() { _ = h.Run(ctx) })
	h.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	return h
}

// say posts a change and waits until all of it has happened.
func (h *hub) say(change func(*Inputs)) {
	<-h.post(change)
	synctest.Wait()
}

func (h *hub) problems(id federation.ClusterID) string {
	var all []string
	for p := range h.Aggregate.Latest().Problems(id) {
		all = append(all, p.Code+" "+p.Field)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func (h *hub) wantIdentity(t *testing.T, id federation.ClusterID, uid string) {
	t.Helper()
	if c, ok := h.Aggregate.Latest().Cluster(id); !ok || c.Identity.UID != uid {
		t.Fatalf("cluster %s is %+v (%v), want that of %s", id, c, ok, uid)
	}
}

func (h *hub) wantPhase(t *testing.T, id federation.ClusterID, phase federation.Phase) {
	t.Helper()
	if c, ok := h.Aggregate.Latest().Cluster(id); !ok || c.Status.Phase != phase {
		t.Fatalf("cluster %s is %+v (%v), want %s", id, c.Status, ok, phase)
	}
}
