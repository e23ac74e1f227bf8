package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// hub is a configuration with one source that is published.
type hub struct {
	source *fakeSource
	views  *config.Aggregate
	mesh   *federation.Aggregate
	other  *federation.Writer
}

func newHub(t *testing.T, r *rapid.T) *hub {
	h := &hub{source: &fakeSource{}, mesh: federation.NewAggregate(nil)}
	for group, names := range map[string][]string{"networking.istio.io": {"ServiceEntry", "WorkloadEntry"},
		"isthmus.dev": {"Allocation", "ServiceBinding"}} {
		for _, name := range names {
			h.source.kinds = append(h.source.kinds, federation.Kind{Group: group, Name: name})
		}
	}
	var stop func()
	h.views, stop = run(t, h.mesh, config.Named{Name: "etcd", Source: h.source})
	r.Cleanup(stop)
	h.other = h.mesh.Open(federation.ShardKey{Cluster: "c1", Provider: "Mock"})
	h.take(t, config.Update{Revision: 1, Full: true})
	return h
}

func (h *hub) take(t *testing.T, u config.Update) {
	h.source.update(u)
	if _, err := h.views.WaitFor(t.Context(), u.Revision); err != nil {
		t.Fatal(err)
	}
}

func (h *hub) said() said {
	return (&world{state: h.views.Latest().State, mesh: h.mesh.Latest()}).said()
}

// preview plans the events and the allocations that they make necessary as a change of the
// hub.
func (h *hub) preview(events []config.Event, revision int64) ([]config.Event, *config.PreviewedState) {
	f := h.views.Latest().State.Preview(events, revision)
	for _, c := range f.Missing {
		events = append(events, config.Event{Old: &config.Object{Key: c.Key}, New: c.Object})
	}
	h.views.Expect(f)
	return events, f
}

// TestR63PreviewedChangesArePublishedAsTheyAre: a hub that plans its changes and one that does not
// say the same at each revision. What is planned is published where it comes as planned, also after
// changes of others, and is computed again where other objects come.
func TestR63PreviewedChangesArePublishedAsTheyAre(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		planning, plain := newHub(t, r), newHub(t, r)
		for step := range rapid.IntRange(1, 5).Draw(r, "steps") {
			revision := int64(step + 2)
			events, f := planning.preview(drawChanges(t, r, planning.views.Latest().State, revision), revision)
			disturbed := rapid.IntRange(0, 2).Draw(r, "disturbed")
			switch disturbed {
			case 1:
				for _, h := range []*hub{planning, plain} {
					h.other.Update(federation.Edit{Status: &federation.RegistryStatus{Phase: federation.Stale, Message: string(rune('a' + step))}})
				}
			case 2:
				events = remade(events)
			}
			for _, h := range []*hub{planning, plain} {
				h.take(t, config.Update{Revision: revision, Events: events})
			}
			as := f.Edit.Receipt
			if planned := disturbed != 2; planned != (planning.views.Latest().State == f.State) || planned && as.After != planning.mesh.Latest() {
				r.Errorf("disturbed in way %d, and what was previewed was published as %+v", disturbed, as)
			}
			if diff := cmp.Diff(plain.said(), planning.said(), cmp.Comparer((*federation.Shard).Equal),
				cmp.Comparer((*federation.Workload).Equal)); diff != "" {
				r.Fatalf("without (-) and with (+) a plan: %s", diff)
			}
			if a, b := plain.mesh.Latest().Version(), planning.mesh.Latest().Version(); a != b {
				r.Errorf("version %d without and %d with a plan", a, b)
			}
		}
	})
}

// drawChanges draws changes of some objects, each of them once, and at least one.
func drawChanges(t *testing.T, r *rapid.T, from *config.State, revision int64) []config.Event {
	var events []config.Event
	seen := map[federation.ObjectKey]bool{}
	for range rapid.IntRange(1, 3).Draw(r, "changes") {
		now := object(t, revision, drawManifest(r))
		if seen[now.Key] || now.Key.Of() == federation.AllocationKind {
			continue // automatic VIPs are the hub's to change
		}
		seen[now.Key] = true
		old, has := from.Object(now.Key)
		if has && rapid.IntRange(0, 2).Draw(r, "gone") == 0 {
			now = nil
		}
		events = append(events, config.Event{Old: old, New: now})
	}
	if len(events) == 0 {
		events = append(events, config.Event{New: object(t, revision, entry("always", "{hosts: [always.example.com]}"))})
	}
	return events
}

// remade are other events than the first: an object with the same bytes, and a deletion less.
func remade(events []config.Event) []config.Event {
	if events[0].New == nil {
		return events[1:]
	}
	again := *events[0].New
	return append([]config.Event{{Old: events[0].Old, New: &again}}, events[1:]...)
}
