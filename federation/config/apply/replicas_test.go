package apply_test

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest"
	"isthmus.dev/isthmus/federation/config/configtest/memory"
	"isthmus.dev/isthmus/federation/config/etcd"
)

// store opens an embedded etcd until the test ends.
func store(t *testing.T, dir string) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Options{DataDir: dir, Patience: configtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Two hubs over one etcd allocate at once: no address is given twice, and every
// service has one.
func TestReplicasAllocateAddressesAtOnce(t *testing.T) {
	s := store(t, filepath.Join(t.TempDir(), "etcd"))
	o := etcd.ConfigOptions{Kinds: kinds(t), Patience: configtest.Patience}
	hubs := []*fixture{join(t, s.Config(o)), join(t, s.Config(o))}
	const each = 12
	var all sync.WaitGroup
	for i, hub := range hubs {
		all.Go(func() {
			for n := range each {
				for {
					r, err := hub.engine.Apply(t.Context(), request(external(fmt.Sprintf("h%d-%d.example.com", i, n))))
					if err != nil {
						t.Error(err)
						return
					}
					if codes(r) == "" {
						break
					}
					if codes(r) != "BUSY " {
						t.Errorf("%s", codes(r))
						return
					}
				}
			}
		})
	}
	all.Wait()
	for _, hub := range hubs {
		if _, err := hub.views.WaitFor(t.Context(), 2*each); err != nil {
			t.Fatal(err)
		}
		owner := map[netip.Prefix]federation.ServiceKey{}
		services := 0
		for svc := range hub.snapshots.Latest().Services().All() {
			addresses := svc.ClusterVIPs.Of("hub")
			services++
			if len(addresses) != 2 {
				t.Errorf("%s has the addresses %v", svc.Key, addresses)
			}
			for _, ip := range addresses {
				if other, twice := owner[ip]; twice {
					t.Errorf("%s is of %s and of %s", ip, other, svc.Key)
				}
				owner[ip] = svc.Key
			}
		}
		if services != 2*each {
			t.Errorf("%d services", services)
		}
	}
}

// model is the configuration as it should be: which subset each route has, as of
// each revision, and which routes are of the set.
type model struct {
	history []map[string]string
	set     map[string]bool
}

func (m *model) now() map[string]string { return m.history[len(m.history)-1] }

// took notes what an acknowledged request made of the configuration.
func (m *model) took(t *rapid.T, r apply.Result, next map[string]string) {
	if codes(r) != "" {
		t.Fatalf("refused: %+v", r.Errors)
	}
	if !maps.Equal(m.now(), next) && r.Revision != int64(len(m.history)) {
		t.Fatalf("revision %d after %d: %s", r.Revision, len(m.history)-1, actions(r))
	}
	if r.Revision >= int64(len(m.history)) {
		m.history = append(m.history, next)
	}
}

// shown is what readers of a hub see.
func (w *fixture) shown() map[string]string {
	seen := map[string]string{}
	for o := range w.views.Latest().State.Objects() {
		_, after, _ := strings.Cut(string(o.Manifest), `"subset":"`)
		seen[o.Key.Name], _, _ = strings.Cut(after, `"`)
	}
	return seen
}

var names = []string{"a", "b", "c", "d"}

// Whatever two hubs do over one store, one after the other: each acknowledged
// request has the effect that it says, at the revision that it says.
func TestHubsAndModelAgree(t *testing.T) {
	for name, open := range map[string]func(*testing.T) []configtest.Store{
		"memory": func(t *testing.T) []configtest.Store {
			s := memory.New(kinds(t)...)
			return []configtest.Store{s, s}
		},
		"etcd": func(t *testing.T) []configtest.Store {
			s := store(t, filepath.Join(t.TempDir(), "etcd"))
			o := etcd.ConfigOptions{Kinds: kinds(t), CheckpointRecords: 5, Probe: 20 * time.Millisecond, Patience: configtest.Patience}
			return []configtest.Store{s.Config(o), s.Config(o)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			stores := open(t)
			hubs := []*fixture{join(t, stores[0]), join(t, stores[1])}
			m := &model{history: []map[string]string{{}}, set: map[string]bool{}}
			rapid.Check(t, func(rt *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(rt, "steps") {
					hub := hubs[rapid.IntRange(0, 1).Draw(rt, "hub")]
					hub.agrees(rt, m)
					hub.step(rt, m)
					hub.agrees(rt, m)
				}
			})
		})
	}
}

func (w *fixture) step(t *rapid.T, m *model) {
	next := maps.Clone(m.now())
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "names")
	subset := rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "subset")
	var text string
	for _, n := range some {
		text += route(n, subset)
	}
	switch rapid.SampledFrom([]string{"apply", "prune", "delete", "rollback", "dry run"}).Draw(t, "what") {
	case "apply":
		for _, n := range some {
			next[n] = subset
		}
		m.took(t, w.apply(text, force), next)
	case "prune":
		for n := range m.set {
			delete(next, n)
		}
		for _, n := range some {
			next[n] = subset
		}
		m.took(t, w.apply(text, force, prune("s")), next)
	case "delete":
		gone := slices.DeleteFunc(some, func(n string) bool { _, ok := next[n]; return !ok })
		if len(gone) == 0 {
			return
		}
		for _, n := range gone {
			delete(next, n)
		}
		m.took(t, w.remove(apply.Origin{}, gone...), next)
	case "rollback":
		if len(m.history) == 1 {
			break // there is nothing to go back to
		}
		to := rapid.IntRange(max(1, len(m.history)-20), len(m.history)-1).Draw(t, "to")
		r, err := w.engine.Rollback(w.t.Context(), apply.Rollback{To: int64(to)})
		if err != nil {
			t.Fatal(err)
		}
		m.took(t, r, maps.Clone(m.history[to]))
	case "dry run":
		w.apply(text, force, dryRun)
	}
	m.set = w.ofSet()
}

// ofSet are the routes that have the label of the set.
func (w *fixture) ofSet() map[string]bool {
	of := map[string]bool{}
	for o := range w.snapshots.Latest().Objects().All() {
		of[o.Key.Name] = o.Labels[apply.SetLabel] == "s"
	}
	maps.DeleteFunc(of, func(_ string, is bool) bool { return !is })
	return of
}

func (w *fixture) agrees(t *rapid.T, m *model) {
	v, err := w.views.WaitFor(w.t.Context(), int64(len(m.history)-1))
	if got := v.Revision(); err != nil || got != int64(len(m.history)-1) {
		t.Fatalf("the hub is at revision %d, the model at %d", got, len(m.history)-1)
	}
	if got := w.shown(); !maps.Equal(got, m.now()) {
		t.Fatalf("the hub shows %v, the model %v", got, m.now())
	}
}

// TestR72RevisionOfAnotherHubIsNoFalseExpectation: a hub that has not read yet what
// another one has just committed reads it before it judges.
func TestR72RevisionOfAnotherHubIsNoFalseExpectation(t *testing.T) {
	s := store(t, filepath.Join(t.TempDir(), "etcd"))
	o := etcd.ConfigOptions{Kinds: kinds(t), Patience: configtest.Patience}
	hubs := []*fixture{join(t, s.Config(o)), join(t, s.Config(o))}
	revision := hubs[0].apply(route("a", "v0")).Revision
	for n := range 20 {
		r := request(route("a", fmt.Sprint("v", n%2+1)))
		r.ExpectedRevision, r.DryRun = &revision, n%4 == 3
		if n%2 == 1 {
			r.ExpectedRevision = nil
			r.ExpectedRevisions = map[federation.ObjectKey]int64{routeKey("a"): revision}
		}
		result, err := hubs[(n+1)%2].engine.Apply(t.Context(), r)
		if err != nil || codes(result) != "" {
			t.Fatalf("change %d on revision %d gives %+v, %v", n, revision, result.Errors, err)
		}
		if !r.DryRun {
			revision = result.Revision
		}
	}
	tooNew := revision + 5
	r := request(route("a", "v9"))
	r.ExpectedRevision = &tooNew
	if result, err := hubs[0].engine.Apply(t.Context(), r); err != nil || codes(result) != "PRECONDITION_FAILED expectedRevision" {
		t.Errorf("a revision that nobody made gives %q, %v", codes(result), err)
	}
}
