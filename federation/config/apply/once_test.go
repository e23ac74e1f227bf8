package apply_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/configtest"
)

func key(k string) func(*apply.Request) { return func(r *apply.Request) { r.IdempotencyKey = k } }

func (w *fixture) remove(origin apply.Origin, names ...string) apply.Result {
	w.t.Helper()
	d := apply.Deletion{Origin: origin}
	for _, n := range names {
		d.Objects = append(d.Objects, routeKey(n))
	}
	r, err := w.engine.Delete(w.t.Context(), d)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestIdempotencyKeyOfAnotherRequestIsRefused(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"), key("k"))
	for name, r := range map[string]apply.Result{
		"other manifests": w.apply(route("web", "v2"), key("k")),
		"other manager":   w.apply(route("web", "v1"), key("k"), manager("me")),
		"forced":          w.apply(route("web", "v1"), key("k"), force),
		"of somebody":     w.apply(route("web", "v1"), key("k"), func(r *apply.Request) { r.Author = "eve" }),
		"a deletion":      w.remove(apply.Origin{IdempotencyKey: "k"}, "web"),
	} {
		if codes(r) != "IDEMPOTENCY_KEY_REUSED idempotencyKey" || len(r.Changes) > 0 {
			t.Errorf("%s: %s, %s", name, codes(r), actions(r))
		}
	}
	back, err := w.engine.Rollback(t.Context(), apply.Rollback{To: 0, Origin: apply.Origin{IdempotencyKey: "k"}})
	if err != nil || codes(back) != "IDEMPOTENCY_KEY_REUSED idempotencyKey" {
		t.Errorf("a rollback: %s, %v", codes(back), err)
	}
	if w.views.Latest().Revision() != 1 {
		t.Errorf("the configuration is at revision %d", w.views.Latest().Revision())
	}
}

// A dry run with a key that was used shows what its manifests would do.
func TestDryRunDoesNotLookAtTheIdempotencyKey(t *testing.T) {
	w := newFixture(t)
	w.must(route("web", "v1"), key("k"))
	if r := w.apply(route("web", "v2"), key("k"), dryRun); actions(r) != "UPDATE web" || !r.DryRun || r.Before == nil || r.After == nil {
		t.Errorf("%s %s, snapshots %v %v", codes(r), actions(r), r.Before != nil, r.After != nil)
	}
}

// The same deletion twice at once, as a client does whose first answer is late.
func TestRepetitionAtTheSameTimeHasTheSameResult(t *testing.T) {
	w := newFixture(t)
	second := join(t, w.store)
	for range 20 {
		w.must(route("web", "v1"))
		base := w.views.Latest().Revision()
		if _, err := second.views.WaitFor(t.Context(), base); err != nil {
			t.Fatal(err)
		}
		k := "delete-" + string(rune('a'+base))
		var all sync.WaitGroup
		results := make([]apply.Result, 4)
		for i := range results {
			hub := []*fixture{w, second}[i%2]
			all.Go(func() { results[i] = hub.remove(apply.Origin{IdempotencyKey: k}, "web") })
		}
		all.Wait()
		for _, r := range results {
			if actions(r) != "DELETE web" || r.Revision != base+1 || codes(r) != "" {
				t.Fatalf("revision %d (after %d): %s %s", r.Revision, base, actions(r), codes(r))
			}
		}
	}
}

// failing is a Log whose next commit is made and not acknowledged.
type failing struct {
	config.Log
	lost bool
}

func (f *failing) Commit(ctx context.Context, c config.Commit) (int64, error) {
	revision, err := f.Log.Commit(ctx, c)
	if f.lost && err == nil {
		f.lost = false
		return 0, errors.Join(config.ErrUnavailable, context.DeadlineExceeded)
	}
	return revision, err
}

func TestUnacknowledgedCommitIsSaidToBeInDoubtAndRepeatedSafely(t *testing.T) {
	w := newFixture(t)
	log := &failing{Log: w.store}
	w.engine.Log = log
	log.lost = true
	if r := w.apply(route("a", "v1")); codes(r) != "UNAVAILABLE " || !strings.Contains(r.Errors[0].Message, "look at the history") {
		t.Errorf("without a key: %+v", r.Errors)
	}
	log.lost = true
	if r := w.apply(route("b", "v1"), key("k")); codes(r) != "UNAVAILABLE " || !strings.Contains(r.Errors[0].Message, "same idempotency key") {
		t.Errorf("with a key: %+v", r.Errors)
	}
	if r := w.must(route("b", "v1"), key("k")); actions(r) != "CREATE b" || r.Revision != 2 {
		t.Errorf("repeated: %s at %d", actions(r), r.Revision)
	}
	if r := w.apply(route("b", "v2"), key("k")); codes(r) != "IDEMPOTENCY_KEY_REUSED idempotencyKey" {
		t.Errorf("changed: %s", codes(r))
	}
}

func TestEndedContextWritesNothing(t *testing.T) {
	w := newFixture(t)
	w.must(route("a", "v1"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := w.engine.Apply(ended, request(route("a", "v2")))
	if err == nil && len(r.Errors) == 0 {
		t.Errorf("it is taken: %s at %d", actions(r), r.Revision)
	}
	if o, _ := w.snapshots.Latest().Object(routeKey("a")); o.Revision != 1 {
		t.Errorf("it is at revision %d", o.Revision)
	}
	w.must(route("a", "v2")) // the turn was given back
}

// ahead is a store that once had more revisions, until an older backup of it was
// put in its place.
type ahead struct {
	configtest.Store
	by     int64
	backup chan struct{}
}

func (a *ahead) Run(ctx context.Context, to config.Sink) error {
	return a.Store.Run(ctx, &early{Sink: to, ahead: a})
}

// early says a revision that is too high until the backup is there.
type early struct {
	config.Sink
	ahead *ahead
}

func (e *early) Update(u config.Update) {
	select {
	case <-e.ahead.backup:
	default:
		u.Revision += e.ahead.by
	}
	e.Sink.Update(u)
}

func TestChangesGoOnFromARestoredBackup(t *testing.T) {
	w := newFixture(t)
	for _, v := range []string{"v1", "v2", "v3"} {
		w.must(route("web", v))
	}
	store := &ahead{Store: w.store, by: 7, backup: make(chan struct{})}
	hub := join(t, store)
	if at := hub.views.Latest().Revision(); at != 10 {
		t.Fatalf("the view is at %d", at)
	}
	close(store.backup)
	w.must(route("other", "v1"))
	for hub.views.Latest().Sources[0].Revision != 4 {
		<-hub.views.Latest().Superseded()
	}
	if r := hub.apply(route("web", "v4")); r.Revision != 5 || actions(r) != "UPDATE web" {
		t.Errorf("revision %d: %s %s", r.Revision, actions(r), codes(r))
	}
}
