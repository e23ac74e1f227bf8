package config_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSource gives what the test tells it to give.
type fakeSource struct {
	kinds []federation.Kind
	mu    sync.Mutex
	calls chan func(config.Sink) error
}

func (f *fakeSource) Kinds() []federation.Kind { return f.kinds }

func (f *fakeSource) queue() chan func(config.Sink) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = make(chan func(config.Sink) error)
	}
	return f.calls
}

func (f *fakeSource) Run(ctx context.Context, to config.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case call := <-f.queue():
			if err := call(to); err != nil {
				return err
			}
		}
	}
}

func (f *fakeSource) update(u config.Update) {
	f.queue() <- func(s config.Sink) error { s.Update(u); return nil }
}

func (f *fakeSource) give(revision int64, full bool, objects ...*config.Object) {
	u := config.Update{Revision: revision, Full: full}
	for _, o := range objects {
		u.Events = append(u.Events, config.Event{New: o})
	}
	f.update(u)
}

func (f *fakeSource) fail(err error) { f.queue() <- func(config.Sink) error { return err } }

type recorder struct {
	mu    sync.Mutex
	edits []federation.Edit
}

func (r *recorder) Update(e federation.Edit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.edits = append(r.edits, e)
}

func (r *recorder) all() []federation.Edit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.edits)
}

// run starts an aggregate; to is a recorder, or a federation.Aggregate.
func run(t testing.TB, to any, sources ...config.Named) (*config.Aggregate, func()) {
	t.Helper()
	publisher, ok := to.(config.Publisher)
	if mesh, is := to.(*federation.Aggregate); is {
		publisher, ok = mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External}), true
	}
	if !ok {
		t.Fatalf("%T publishes nothing", to)
	}
	a := config.NewAggregate(config.Options{Hub: "hub"}, publisher, slog.New(slog.DiscardHandler), sources...)
	return a, start(t, a)
}

// start runs an aggregate until it is stopped.
func start(t testing.TB, a *config.Aggregate) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run gives %v", err)
		}
	}
}

var networks = []federation.Kind{federation.NetworkKind}

func net(t testing.TB, name, cidr string) *config.Object {
	return object(t, 1, "apiVersion: isthmus.dev/v1\nkind: Network\nmetadata: {name: \""+name+"\"}\nspec: {cidrs: [\""+cidr+"\"]}")
}

func netKey(name string) federation.ObjectKey {
	return federation.ObjectKey{Group: "isthmus.dev", Kind: "Network", Name: name}
}

func cidr(t testing.TB, mesh *federation.Aggregate, name string) string {
	t.Helper()
	o, ok := mesh.Latest().Object(netKey(name))
	if !ok {
		return "none"
	}
	return o.Spec.(*federation.NetworkObject).CIDRs[0].String()
}

// problemsOf are the problems but that networks have no effect.
func problemsOf(mesh *federation.Aggregate) []string {
	var out []string
	for p := range mesh.Latest().Problems("hub") {
		if p.Code != "NOT_HONOURED" {
			out = append(out, p.Code+" "+p.Object)
		}
	}
	return out
}

// TestSeed30 has an object in two stores: it counts once, from the first, and
// what is hidden is reported and comes forth when the first is gone.
func TestSeed30(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := federation.NewAggregate(nil)
		etcd, file := &fakeSource{kinds: networks}, &fakeSource{kinds: networks}
		a, stop := run(t, mesh, config.Named{Name: "etcd", Source: etcd}, config.Named{Name: "file", Source: file})
		defer stop()
		file.give(7, true, net(t, "n", "10.2.0.0/16"), net(t, "only-file", "10.3.0.0/16"))
		synctest.Wait()
		if got := cidr(t, mesh, "n"); got != "10.2.0.0/16" || a.Latest().Synced() {
			t.Errorf("before etcd answers: %s, synced %v", got, a.Latest().Synced())
		}
		etcd.give(3, true, net(t, "n", "10.1.0.0/16"))
		synctest.Wait()
		view := a.Latest()
		if got := cidr(t, mesh, "n"); got != "10.1.0.0/16" || view.State.Len() != 2 || view.Revision() != 3 || mesh.Latest().Revision() != 3 {
			t.Errorf("%s of %d objects at revision %d", got, view.State.Len(), view.Revision())
		}
		if first, hidden := view.SourceOf(netKey("n")); first != "etcd" || !slices.Equal(hidden, []string{"file"}) {
			t.Errorf("of %s, hiding %v", first, hidden)
		}
		if got := problemsOf(mesh); !slices.Equal(got, []string{"HIDDEN_BY Network n"}) {
			t.Errorf("problems %v", got)
		}
		etcd.update(config.Update{Revision: 4, Events: []config.Event{{Old: net(t, "n", "10.1.0.0/16")}}})
		synctest.Wait()
		if got := cidr(t, mesh, "n"); got != "10.2.0.0/16" || len(problemsOf(mesh)) > 0 {
			t.Errorf("after the first is gone: %s, %v", got, problemsOf(mesh))
		}
	})
}

// TestG10ObjectsForAllProxiesComeFirst has objects of one name for all proxies and for those of two
// clusters, of which neither hides the other.
func TestG10ObjectsForAllProxiesComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := federation.NewAggregate(nil)
		kinds := []federation.Kind{{Group: "networking.istio.io", Name: "VirtualService"}}
		etcd, first, second := &fakeSource{kinds: kinds}, &fakeSource{kinds: kinds}, &fakeSource{kinds: kinds}
		a, stop := run(t, mesh, config.Named{Name: "etcd", Source: etcd}, config.Named{Name: "crd:c1", Source: first},
			config.Named{Name: "crd:c2", Source: second})
		defer stop()
		web := func(of federation.ClusterID) *config.Object {
			o := object(t, 1,
				"apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web, namespace: shop}\nspec: {hosts: [web]}")
			o.Key.Cluster = of
			return o
		}
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for o := range mesh.Latest().Objects().All() {
				counts, hidden := a.Latest().SourceOf(o.Key)
				got = append(got, fmt.Sprint(o.Key.Title(), " of ", counts, hidden))
			}
			got = append(got, problemsOf(mesh)...)
			if !slices.Equal(got, want) {
				t.Errorf("%s there are %q, want %q", when, got, want)
			}
		}
		etcd.give(1, true)
		first.give(1, true, web("c1"))
		second.give(1, true, web("c2"))
		expect("at first", "VirtualService shop/web of cluster c1 of crd:c1[]", "VirtualService shop/web of cluster c2 of crd:c2[]")
		etcd.give(2, true, web(""))
		expect("with one for all proxies", "VirtualService shop/web of etcd[]",
			"HIDDEN_BY VirtualService shop/web of cluster c1", "HIDDEN_BY VirtualService shop/web of cluster c2")
		etcd.update(config.Update{Revision: 3, Events: []config.Event{{Old: web("")}}})
		expect("without it", "VirtualService shop/web of cluster c1 of crd:c1[]", "VirtualService shop/web of cluster c2 of crd:c2[]")
		first.give(2, true)
		expect("at last", "VirtualService shop/web of cluster c2 of crd:c2[]")
	})
}

// TestExpectationsDecideNothing gives other objects than were expected: what came
// counts, at its own revision.
func TestExpectationsDecideNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := federation.NewAggregate(nil)
		etcd := &fakeSource{kinds: networks}
		a, stop := run(t, mesh, config.Named{Name: "etcd", Source: etcd})
		defer stop()
		etcd.give(1, true)
		synctest.Wait()
		same, other := net(t, "same", "10.1.0.0/16"), net(t, "other", "10.2.0.0/16")
		a.Expect(a.Latest().State.Preview([]config.Event{{New: same}, {New: other}, {New: net(t, "never", "10.3.0.0/16")}}, 2).State)
		came := *same
		came.Revision = 2
		etcd.give(2, false, &came, net(t, "other", "10.9.0.0/16"))
		synctest.Wait()
		got := []string{cidr(t, mesh, "same"), cidr(t, mesh, "other"), cidr(t, mesh, "never")}
		if o, _ := mesh.Latest().Object(netKey("same")); !slices.Equal(got, []string{"10.1.0.0/16", "10.9.0.0/16", "none"}) || o.Revision != 2 {
			t.Errorf("the networks are %v, the first at revision %d", got, o.Revision)
		}
	})
}

// TestSeed31 has keys that would collide if they were joined without care.
func TestSeed31(t *testing.T) {
	a, b := entry("c", `{hosts: [x.example.com]}`), entry("bc", `{hosts: [y.example.com]}`)
	w := newFixture()
	one, two := object(t, 1, a), object(t, 1, b)
	one.Key.Namespace, two.Key.Namespace = "ab", "a"
	w.take([]config.Event{{New: one}, {New: two}})
	for _, key := range []federation.ObjectKey{one.Key, two.Key} {
		if _, ok := w.state.Object(key); !ok {
			t.Errorf("%s is not there", key)
		}
		if _, ok := w.mesh.Object(key); !ok {
			t.Errorf("%s is not in the mesh", key)
		}
	}
}

// TestSeed32 has two sources, of which one knows the kind: the other is not
// asked for it, and what it gives of it all the same does not count.
func TestSeed32(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := federation.NewAggregate(nil)
		entries, nets := &fakeSource{kinds: []federation.Kind{federation.ServiceEntryKind}}, &fakeSource{kinds: networks}
		a, stop := run(t, mesh, config.Named{Name: "entries", Source: entries}, config.Named{Name: "nets", Source: nets})
		defer stop()
		nets.give(1, true, net(t, "n", "10.1.0.0/16"))
		entries.give(1, true, net(t, "n", "10.9.0.0/16"))
		synctest.Wait()
		if got := a.Latest().SourcesKnowing(federation.NetworkKind); !slices.Equal(got, []string{"nets"}) {
			t.Errorf("asked are %v", got)
		}
		if got := cidr(t, mesh, "n"); got != "10.1.0.0/16" {
			t.Errorf("the network is %s", got)
		}
		if got := problemsOf(mesh); len(got) != 1 || got[0][:15] != "KIND_UNEXPECTED" {
			t.Errorf("problems %v", got)
		}
	})
}

// TestFailingSourceKeepsWhatItGave has a source that ends, and comes back.
func TestFailingSourceKeepsWhatItGave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := federation.NewAggregate(nil)
		etcd := &fakeSource{kinds: networks}
		a, stop := run(t, mesh, config.Named{Name: "etcd", Source: etcd})
		defer stop()
		etcd.give(1, true, net(t, "n", "10.1.0.0/16"), net(t, "m", "10.2.0.0/16"))
		etcd.fail(errors.New("the disk is gone"))
		synctest.Wait()
		hub, _ := mesh.Latest().Cluster("hub")
		if got := cidr(t, mesh, "n"); got != "10.1.0.0/16" || hub.Status.Phase != federation.Stale ||
			!slices.Equal(problemsOf(mesh), []string{"SOURCE_STOPPED source etcd"}) {
			t.Errorf("%s, %+v, %v", got, hub.Status, problemsOf(mesh))
		}
		began := time.Now()
		etcd.give(2, true, net(t, "n", "10.1.0.0/16")) // taken once it runs again
		synctest.Wait()
		hub, _ = mesh.Latest().Cluster("hub")
		if took := time.Since(began); took < 750*time.Millisecond || took > 1250*time.Millisecond || hub.Status.Phase != federation.Ready ||
			len(problemsOf(mesh)) > 0 {
			t.Errorf("after %v: %+v, %v", took, hub.Status, problemsOf(mesh))
		}
		if got := cidr(t, mesh, "m"); got != "none" || a.Latest().Revision() != 2 {
			t.Errorf("a full update leaves %s", got)
		}
	})
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	a, stop := run(t, &recorder{}, config.Named{Name: "etcd", Source: &fakeSource{}})
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.WaitFor(ctx, 9); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting gives %v", err)
	}
}
