package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

// Views gives the newest configuration, and gets a preview of the next one; a
// config.Aggregate is one.
type Views interface {
	Latest() *config.View
	Expect(next *config.State)
}

// Snapshots gives the newest snapshot; a federation.Aggregate does.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Options are what an Engine works with. All fields up to Schema are
// required.
type Options struct {
	Log       config.Log
	Leases    config.Leases
	Views     Views     // the first source of which is the Log's
	Snapshots Snapshots // that the views are published to
	Schema    *schema.Set
	Validated *Validated       // the Log's source, so that it trusts what is written here; nil: none
	Now       func() time.Time // nil: time.Now
	NewUID    func() string    // of a new object; nil: a random UUID; several goroutines call it
	Limits    manifest.Limits  // zero fields: their defaults
	Logger    *slog.Logger     // of changes that were made; nil: none
}

// Engine changes the configuration. Its methods may be used by many goroutines
// at once; changes are made one after the other.
type Engine struct {
	Options
	plans planning
	turn  chan struct{} // holds one token: its holder may change the configuration

	mu                sync.Mutex
	storeUnresponsive chan struct{} // closed when the store does not answer who has the turn
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewUID == nil {
		o.NewUID = newUID
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		Options: o, plans: planning{schema: o.Schema, now: o.Now, newUID: o.NewUID}, turn: make(chan struct{}, 1),
		storeUnresponsive: make(chan struct{}),
	}
	e.turn <- struct{}{}
	return e
}

// maxAttempts is how often a change is recomputed because another hub was
// faster.
const maxAttempts = 10

// planner computes what a request changes in a view.
type planner func(base) (plan, []Error)

// planning is what plans are computed with, beside what is stored.
type planning struct {
	schema *schema.Set
	now    func() time.Time
	newUID func() string
}

// plan is what a request would change.
type plan struct {
	changes  []Change // unchanged objects included
	findings []Finding

	credentials []Credentials // to write
}

// made are the changes that change something.
func (p plan) made() []Change {
	unchanged := func(c Change) bool { return c.Action == config.Unchanged }
	if !slices.ContainsFunc(p.changes, unchanged) {
		return p.changes
	}
	return slices.DeleteFunc(slices.Clone(p.changes), unchanged)
}

// commits are changes as they are written.
func commits(made []Change) []config.Change {
	out := make([]config.Change, len(made))
	for i, c := range made {
		out[i] = config.Change{Key: c.Key, Object: c.Object}
	}
	return out
}

// change plans and, unless it is a dry run, commits; again if the configuration
// moved meanwhile. An error is that the store or the context ended it; what is
// wrong with the request is in the result.
func (e *Engine) change(ctx context.Context, o Origin, dryRun bool, compute planner) (Result, error) {
	if result, err := e.catchUp(ctx, o.expects); result != nil || err != nil {
		refused := deref(result)
		refused.DryRun = dryRun
		return refused, err
	}
	if dryRun {
		on := base{e.Views.Latest()}
		p, problems := compute(on)
		if ctx.Err() != nil {
			return Result{}, fmt.Errorf("computing the change: %w", ctx.Err())
		}
		if len(problems) > 0 {
			return bounded(Result{DryRun: true, Revision: on.Revision(), Errors: problems}), nil
		}
		result, _, _ := e.preview(on, p)
		result.DryRun = true
		return bounded(result), nil
	}
	select {
	case <-e.turn:
		defer func() { e.turn <- struct{}{} }()
	case <-e.unresponsive():
		return Result{Errors: []Error{{
			Code:    Unavailable,
			Message: "the store did not answer the change before this one: nothing was changed; repeat it later",
		}}}, nil
	case <-ctx.Done():
		return Result{}, fmt.Errorf("waiting for other changes: %w", ctx.Err())
	}
	for range maxAttempts {
		if result, err := e.attempt(ctx, o, compute); result != nil || err != nil {
			if result != nil && result.unavailable() {
				e.failAll()
			}
			return bounded(deref(result)), err
		}
	}
	return Result{Errors: []Error{{Code: Busy, Message: "others keep changing the configuration; repeat the request"}}}, nil
}

// unresponsive ends the wait for a turn: who waits does not find out one after the
// other that the store does not answer (F27).
func (e *Engine) unresponsive() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.storeUnresponsive
}

// failAll fails all callers that wait now.
func (e *Engine) failAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.storeUnresponsive)
	e.storeUnresponsive = make(chan struct{})
}

func (r Result) unavailable() bool {
	return slices.ContainsFunc(r.Errors, func(e Error) bool { return e.Code == Unavailable })
}

// attempt is one try of a change. Without a result another writer was faster.
func (e *Engine) attempt(ctx context.Context, o Origin, compute planner) (*Result, error) {
	on := base{e.Views.Latest()}
	// In this order: what the view has of the same request is found.
	if done, err := e.repeated(ctx, o); done != nil || err != nil {
		return done, err
	}
	p, problems := compute(on)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("computing the change: %w", ctx.Err())
	}
	if len(problems) > 0 {
		return &Result{Revision: on.Revision(), Errors: problems}, nil
	}
	result, writes, next := e.preview(on, p)
	result.Before, result.After = nil, nil
	if len(writes) == 0 {
		return &result, nil
	}
	for _, w := range writes {
		e.Validated.rememberWritten(w.Object)
	}
	e.Views.Expect(next)
	revision, err := e.Log.Commit(ctx, config.Commit{
		Base: on.Revision(), Changes: writes,
		Secrets: secretsOf(p.credentials, writes), Note: e.note(o),
	})
	var moved *config.Moved
	if errors.As(err, &moved) {
		return e.awaitMove(ctx, on, moved)
	}
	var made *config.Repeated
	if errors.As(err, &made) {
		return e.madeBefore(ctx, o, result, made.Revision), nil
	}
	if errors.Is(err, config.ErrUnavailable) {
		return inDoubt(o, err), nil
	}
	if err != nil {
		result, err = refusedBy(err)
		return &result, err
	}
	e.logChange(o, revision, result.Changes)
	return e.published(ctx, result, revision), nil
}

// preview says what the plan comes to, what is to be written for it, the
// automatic VIPs that it makes necessary included, and the state that follows.
func (e *Engine) preview(on base, p plan) (Result, []config.Change, *config.State) {
	made := p.made()
	writes := commits(made)
	events := make([]config.Event, len(writes))
	for i, w := range writes {
		events[i] = config.Event{Old: &config.Object{Key: w.Key}, New: w.Object}
		if w.Object == nil {
			events[i].New = on.Behind(w.Key)
		}
	}
	next := on.State.Preview(events, on.Revision()+1)
	before := e.Snapshots.Latest()
	after, _ := federation.Next(before, next.Edit.Timed(e.Now()))
	result := Result{Revision: on.Revision(), Changes: p.changes, Before: before, After: after}
	result.Findings = append(append(p.findings, analyse(before, after, made)...), on.hides(made)...)
	return result, append(writes, next.Missing...), next.State
}

func (e *Engine) note(o Origin) config.Note {
	return config.Note{
		Author: o.Author, Time: e.Now().UTC(), Message: o.Message, Manager: o.manager, Ticket: o.Ticket, IdempotencyKey: o.IdempotencyKey,
		RequestDigest: o.digest,
	}
}

// published waits until readers see the revision. That they do not is not an error:
// the change is made.
func (e *Engine) published(ctx context.Context, r Result, revision int64) *Result {
	r.Revision = revision
	for i, c := range r.Changes {
		if c.Object != nil && c.Action != config.Unchanged {
			stored := *c.Object // others have that one by now
			stored.Revision = revision
			r.Changes[i].Object = &stored
		}
	}
	e.awaitVisible(ctx, &r)
	return &r
}

func deref(r *Result) Result {
	if r == nil {
		return Result{}
	}
	return *r
}
