package config

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"isthmus.dev/isthmus/federation"
)

// lastPrecedence makes External the last registry wherever services of others
// have the same name (seed 20).
const lastPrecedence = 1 << 30

// Named is a source and how people call it.
type Named struct {
	Name   string
	Source Source
}

// Publisher takes what the configuration means to the mesh; a federation.Writer
// is one. Update returns when readers can see it.
type Publisher interface{ Update(federation.Edit) }

// Aggregate makes one configuration of several sources: for each object the
// first source in precedence counts, and what it hides is reported. A failing
// source keeps what it gave.
type Aggregate struct {
	sources   []Named
	publisher Publisher
	log       *slog.Logger
	meter     Meter
	mu        sync.Mutex // held while a view is made
	said      map[string]Problem
	latest    atomic.Pointer[View]
	expected  atomic.Pointer[State]
}

// NewAggregate starts from no objects. The sources are in order of precedence;
// the first is the store of record, whose revisions those of the views are.
func NewAggregate(o Options, to Publisher, log *slog.Logger, sources ...Named) *Aggregate {
	a := &Aggregate{sources: sources, publisher: to, log: log, meter: o.Meter, said: map[string]Problem{}}
	first := &View{State: NewState(o), overlay: newOverlay(sources), superseded: make(chan struct{})}
	for _, s := range sources {
		first.Sources = append(first.Sources, SourceStatus{Name: s.Name})
	}
	a.latest.Store(first)
	return a
}

// Latest returns the newest view. It never blocks. What it holds is published
// already.
func (a *Aggregate) Latest() *View { return a.latest.Load() }

// LatestPublished returns the newest view once no change is being published. For a caller that
// has seen a change in a snapshot, the view includes that change: Latest may still be
// the view before it, for a moment.
func (a *Aggregate) LatestPublished() *View {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Latest()
}

// WaitFor returns the first view that it finds to include the revision of the
// store of record.
func (a *Aggregate) WaitFor(ctx context.Context, revision int64) (*View, error) {
	return a.waitUntil(ctx, func(v *View) bool { return v.Revision() >= revision })
}

// WaitSynced returns the first view that it finds to have an update of every
// source.
func (a *Aggregate) WaitSynced(ctx context.Context) (*View, error) {
	return a.waitUntil(ctx, (*View).Synced)
}

// WaitSyncedFor returns the first view that it finds to have an update of every source
// that gives the kind.
func (a *Aggregate) WaitSyncedFor(ctx context.Context, kind federation.Kind) (*View, error) {
	return a.waitUntil(ctx, func(v *View) bool { return v.SyncedFor(kind) })
}

func (a *Aggregate) waitUntil(ctx context.Context, found func(*View) bool) (*View, error) {
	for {
		v := a.Latest()
		if found(v) {
			return v, nil
		}
		select {
		case <-v.Superseded():
		case <-ctx.Done():
			return v, fmt.Errorf("waiting for the configuration, which is at revision %d: %w", v.Revision(), ctx.Err())
		}
	}
}

// Expect says what the next change of the store of record probably comes to.
// Objects that come with the same bytes are then not decoded again; whatever
// else comes is taken as it is.
func (a *Aggregate) Expect(next *State) { a.expected.Store(next) }

func (a *Aggregate) update(source int, u Update) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.Latest()
	view := before.next()
	var keys []federation.ObjectKey
	var refused []Problem
	view.overlay, keys, refused = before.overlay.take(source, u)
	revision := before.Revision()
	var expected *State
	if source == 0 {
		revision, expected = max(revision, u.Revision), a.expected.Swap(nil)
	}
	var edit federation.Edit
	events := view.overlay.events(before.overlay, keys)
	a.count(events)
	view.State, edit = before.State.next(events, revision, expected)
	status := &view.Sources[source]
	status.Synced, status.Heard, status.Revision = status.Synced || u.Full, time.Now(), u.Revision
	for _, key := range keys {
		a.setProblem(&edit, "hidden"+nul+objectSortKey(key), view.overlay.hidden(key))
	}
	if u.Full || len(refused) > 0 {
		a.setProblems(&edit, "refused"+nul+a.sources[source].Name, refused)
	}
	if u.Full && stopped(status.Trouble) {
		a.complain(&edit, status, nil)
	}
	a.publish(before, view, edit)
}

// count tells the meter about changes of what counts: an object that another hides makes none.
func (a *Aggregate) count(events []Event) {
	if a.meter == nil {
		return
	}
	for _, e := range events {
		event := "update"
		switch {
		case e.Old == nil:
			event = "add"
		case e.New == nil:
			event = "delete"
		}
		a.meter.Changed(e.Key().Of(), event)
	}
}

// trouble replaces what is wrong with the source. What it gave stays.
func (a *Aggregate) trouble(source int, problems []Problem) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.Latest()
	if slices.Equal(before.Sources[source].Trouble, problems) {
		return
	}
	view := before.next()
	edit := federation.Edit{Source: before.State.Source()}
	a.complain(&edit, &view.Sources[source], problems)
	a.publish(before, view, edit)
}

func (a *Aggregate) complain(edit *federation.Edit, status *SourceStatus, problems []Problem) {
	status.Trouble = slices.Clone(problems)
	named := slices.Clone(problems)
	for i := range named {
		if named[i].Object == "" {
			named[i].Object = "source " + status.Name
		}
	}
	a.setProblems(edit, "source"+nul+status.Name, named)
}

func (v *View) next() *View {
	return &View{State: v.State, Sources: slices.Clone(v.Sources), overlay: v.overlay, superseded: make(chan struct{})}
}

// publish makes the view the latest; the caller holds mu.
func (a *Aggregate) publish(before, now *View, edit federation.Edit) {
	old, status := before.status(), now.status()
	now.since = before.since
	if old.Phase != status.Phase || now.since.IsZero() {
		now.since = time.Now()
	}
	if status != old || before.since.IsZero() {
		status.Since = now.since
		edit.Status = &status
	}
	if edit.Services.Full {
		hub := federation.ClusterSpec{Provider: federation.External, Precedence: lastPrecedence}
		edit.Clusters.Set = map[federation.ClusterID]federation.ClusterSpec{edit.Source.Cluster: hub}
	}
	if edit.Problems.Full {
		for name, p := range a.said {
			edit.Problems.Set[name] = federation.Problem(p)
		}
	}
	a.publisher.Update(edit)
	a.latest.Store(now)
	close(before.superseded)
}
