package registration_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/registration"
)

// loaded is the schemas; compiling them takes longer than the tests.
var loaded = sync.OnceValues(func() (*schema.Set, error) { return schema.Load(kind.Expressions) })

const mesh = `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: {name: ledger, namespace: shop}
spec:
  metadata: {labels: {app: ledger}, annotations: {proxy.istio.io/health-checks-enabled: "true"}}
  template: {serviceAccount: ledger, ports: {http: 9090}, locality: eu/a}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ledger, namespace: shop}
spec:
  hosts: [ledger.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  workloadSelector: {labels: {app: ledger}}
`

// fixture is a store and the hubs over it.
type fixture struct {
	t       *testing.T
	store   *memory.Store
	members int // of one account at a hub, at most
	*hub        // the first
}

// hub is one of them, with a keeper.
type hub struct {
	t         *testing.T
	snapshots *federation.Aggregate
	engine    *apply.Engine
	keeper    *registration.Keeper
	written   atomic.Int32 // WorkloadEntries that reached the store
	slow      atomic.Int64 // how long each takes
	reports   atomic.Int32 // reports about health that did
	log       bytes.Buffer // of the keeper; read it when all goroutines wait
	stop      func()
}

// Register is part of registration.Registrar.
func (h *hub) Register(ctx context.Context, manifest []byte, ttl time.Duration) (time.Time, []apply.Error, error) {
	h.written.Add(1)
	pass(time.Duration(h.slow.Load()))
	return h.engine.Register(ctx, manifest, ttl)
}

// counted counts what is written of reports.
type counted struct {
	config.Leases
	hub *hub
}

func (c counted) Register(ctx context.Context, o config.Object, ttl time.Duration) (time.Time, error) {
	c.hub.reports.Add(1)
	return c.Leases.Register(ctx, o, ttl)
}

// inFixture runs the test in a bubble, with the mesh applied, and three proxies of one account at most.
func inFixture(t *testing.T, test func(t *testing.T, w *fixture)) {
	t.Helper()
	inFixtureOf(t, 3, test)
}

func inFixtureOf(t *testing.T, members int, test func(t *testing.T, w *fixture)) {
	t.Helper()
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	kinds := []federation.Kind{federation.AllocationKind, federation.WorkloadHealthKind}
	for _, k := range set.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	synctest.Test(t, func(t *testing.T) {
		w := &fixture{t: t, store: memory.New(kinds...), members: members}
		w.hub = w.start(set)
		w.apply(mesh)
		test(t, w)
	})
}

// start runs another hub over the store.
func (w *fixture) start(set *schema.Set) *hub {
	h := &hub{t: w.t, snapshots: federation.NewAggregate(nil)}
	o, quiet := config.Options{Hub: "hub"}, slog.New(slog.DiscardHandler)
	source := apply.NewValidated(w.store, set, quiet)
	views := config.NewAggregate(o, h.snapshots.Open(config.NewState(o).Source()), quiet, config.Named{Name: "ETCD", Source: source})
	h.engine = apply.New(apply.Options{Log: w.store, Leases: w.store, Views: views, Snapshots: h.snapshots, Schema: set, Validated: source})
	h.keeper = registration.New(registration.Options{
		Snapshots: h.snapshots, Views: views, Registrar: h, Leases: counted{w.store, h}, Hub: "hub", Members: w.members,
		Logger: slog.New(slog.NewTextHandler(&h.log, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = views.Run(ctx) })
	parts.Go(func() { _ = h.keeper.Run(ctx) })
	h.stop = func() { cancel(); parts.Wait() }
	w.t.Cleanup(h.stop)
	if _, err := views.WaitSynced(ctx); err != nil {
		w.t.Fatal(err)
	}
	return h
}

// another runs one more hub.
func (w *fixture) another() *hub {
	w.t.Helper()
	set, err := loaded()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.start(set)
}

func (w *fixture) apply(manifests string) {
	w.t.Helper()
	r, err := w.engine.Apply(w.t.Context(), apply.Request{Manifests: []apply.File{{Name: "mesh.yaml", Data: manifests}}})
	if err != nil || len(r.Errors) > 0 {
		w.t.Fatalf("applying: %v, %+v", err, r.Errors)
	}
}

// delete deletes the WorkloadEntry of that name.
func (w *fixture) delete(name string) {
	w.t.Helper()
	key := federation.ObjectKey{Group: "networking.istio.io", Kind: "WorkloadEntry", Namespace: "shop", Name: name}
	r, err := w.engine.Delete(w.t.Context(), apply.Deletion{Objects: []federation.ObjectKey{key}})
	if err != nil || len(r.Errors) > 0 {
		w.t.Fatalf("deleting: %v, %+v", err, r.Errors)
	}
}

// endpoints are those of the service, once the hub has handled everything.
func (h *hub) endpoints() []federation.Endpoint {
	h.t.Helper()
	synctest.Wait()
	s, exists := h.snapshots.Latest().Service(federation.ServiceKey{Hostname: "ledger.example.com", Namespace: "shop"})
	if !exists {
		h.t.Fatal("the service does not exist")
	}
	var all []federation.Endpoint
	for _, group := range s.Endpoints {
		all = append(all, group.Endpoints...)
	}
	return all
}

// vm is a proxy of the group.
func vm(address string) registration.Proxy {
	return registration.Proxy{
		Node: "sidecar~" + address + "~vm." + "shop~shop.svc.cluster.local", Cluster: "c1", TrustDomain: "cluster.local",
		Namespace: "shop", Account: "ledger",
		Group: "ledger", Addresses: at(address), Identity: true,
	}
}

func (h *hub) join(p registration.Proxy) *registration.Membership {
	h.t.Helper()
	joined, err := h.keeper.Join(p)
	if err != nil {
		h.t.Fatal(err)
	}
	return joined
}

// at is the list of one address.
func at(address string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(address)} }
