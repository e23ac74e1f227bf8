package apply_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
)

// fixture is an engine over a store in memory, with all that follows from it.
type fixture struct {
	t         *testing.T
	store     *memory.Store // nil: another one
	log       config.Log
	views     *config.Aggregate
	snapshots *federation.Aggregate
	engine    *apply.Engine
}

// loaded is the schemas; compiling them takes longer than the tests.
var loaded = sync.OnceValues(func() (*schema.Set, error) { return schema.Load(kind.Expressions) })

func newFixture(t *testing.T, more ...config.Named) *fixture {
	t.Helper()
	store := memory.New(kinds(t)...)
	w := join(t, store, more...)
	w.store = store
	return w
}

func kinds(t *testing.T) []federation.Kind {
	t.Helper()
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	all := []federation.Kind{federation.AllocationKind}
	for _, k := range set.Kinds() {
		all = append(all, k.Kind)
	}
	return all
}

// join makes a hub over a store that others may use, too.
func join(t *testing.T, store configtest.Store, more ...config.Named) *fixture {
	t.Helper()
	set, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, log: store, snapshots: federation.NewAggregate(nil)}
	o := config.Options{Hub: "hub"}
	writer := w.snapshots.Open(config.NewState(o).Source())
	quiet := slog.New(slog.DiscardHandler)
	source := apply.NewValidated(store, set, quiet)
	w.views = config.NewAggregate(o, writer, quiet, append([]config.Named{{Name: "ETCD", Source: source}}, more...)...)
	w.engine = apply.New(apply.Options{Log: store, Leases: store, Views: w.views, Snapshots: w.snapshots, Schema: set, Validated: source})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.views.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	if _, err := w.views.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// request makes one of YAML manifests.
func request(manifests string, change ...func(*apply.Request)) apply.Request {
	r := apply.Request{Manifests: []apply.File{{Name: "mesh.yaml", Data: manifests}}}
	for _, f := range change {
		f(&r)
	}
	return r
}

func (w *fixture) apply(manifests string, change ...func(*apply.Request)) apply.Result {
	w.t.Helper()
	r, err := w.engine.Apply(w.t.Context(), request(manifests, change...))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// must is apply where nothing may be refused.
func (w *fixture) must(manifests string, change ...func(*apply.Request)) apply.Result {
	w.t.Helper()
	r := w.apply(manifests, change...)
	if len(r.Errors) > 0 {
		w.t.Fatalf("refused: %v", codes(r))
	}
	return r
}

// codes is the errors as CODE field.
func codes(r apply.Result) string {
	var all []string
	for _, e := range r.Errors {
		all = append(all, fmt.Sprintf("%s %s", e.Code, e.Field))
	}
	return strings.Join(all, "; ")
}

// actions is the changes as ACTION name.
func actions(r apply.Result) string {
	var all []string
	for _, c := range r.Changes {
		all = append(all, fmt.Sprintf("%s %s", c.Action, c.Key.Name))
	}
	return strings.Join(all, "; ")
}

func manager(name string) func(*apply.Request) { return func(r *apply.Request) { r.Manager = name } }
func force(r *apply.Request)                   { r.Force = true }
func dryRun(r *apply.Request)                  { r.DryRun = true }
func prune(set string) func(*apply.Request) {
	return func(r *apply.Request) { r.Set, r.Prune = set, true }
}

// route is a VirtualService that sends a host to one subset.
func route(name, subset string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: shop}
spec:
  hosts: [%s.shop.svc.cluster.local]
  http: [{route: [{destination: {host: %s, subset: %s}}]}]
---`, name, name, name, subset)
}

func external(host string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: shop}
spec:
  hosts: [%s]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 192.0.2.1}]
---`, strings.Split(host, ".")[0], host)
}

func routeKey(name string) federation.ObjectKey {
	return federation.ObjectKey{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: name}
}
