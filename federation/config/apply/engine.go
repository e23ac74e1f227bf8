package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

// Views gives the newest configuration; a config.Aggregate does.
type Views interface {
	Latest() *config.View
	// WaitFor returns a view that includes the revision.
	WaitFor(ctx context.Context, revision int64) (*config.View, error)
}

// Snapshots gives the newest snapshot; a federation.Aggregate does.
type Snapshots interface {
	Latest() *federation.Snapshot
}

// Options are what an Engine works with. All fields but the last four are
// required.
type Options struct {
	Log       config.Log
	Leases    config.Leases
	Views     Views     // the first source of which is the Log's
	Snapshots Snapshots // that the views are published to
	Schema    *schema.Set
	Validated *Validated       // the Log's source, so that it trusts what is written here; nil: none
	Now       func() time.Time // nil: time.Now
	NewUID    func() string    // of a new object; nil: a random UUID
	Limits    manifest.Limits  // zero fields: their defaults
}

// Engine changes the configuration. Its methods may be used by many goroutines
// at once; changes are made one after the other.
type Engine struct {
	Options
	turn chan struct{} // holds one token: whoever has it changes
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewUID == nil {
		o.NewUID = newUID
	}
	e := &Engine{Options: o, turn: make(chan struct{}, 1)}
	e.turn <- struct{}{}
	return e
}

// maxAttempts is how often a change is computed anew because another hub was
// faster.
const maxAttempts = 10

// planner computes what a request changes in a view.
type planner func(base) (plan, []Error)

// plan is what a request would change.
type plan struct {
	changes []Change // unchanged objects included
}

// commits are the changes that are written.
func (p plan) commits() []config.Change {
	var out []config.Change
	for _, c := range p.changes {
		if c.Action != config.Unchanged {
			out = append(out, config.Change{Key: c.Key, Object: c.Object})
		}
	}
	return out
}

// change plans and, unless it is a dry run, commits; again if the configuration
// moved meanwhile. An error is that the store or the context ended it; what is
// wrong with the request is in the result.
func (e *Engine) change(ctx context.Context, o Origin, dryRun bool, compute planner) (Result, error) {
	if done, err := e.repeated(ctx, o); done != nil || err != nil {
		return deref(done), err
	}
	if !dryRun {
		select {
		case <-e.turn:
			defer func() { e.turn <- struct{}{} }()
		case <-ctx.Done():
			return Result{}, fmt.Errorf("waiting for other changes: %w", ctx.Err())
		}
	}
	for range maxAttempts {
		on := base{e.Views.Latest()}
		p, problems := compute(on)
		if len(problems) > 0 {
			return Result{DryRun: dryRun, Revision: on.Revision(), Errors: problems}, nil
		}
		result, writes := e.foresee(on, p)
		if result.DryRun = dryRun; dryRun || len(writes) == 0 {
			return result, nil
		}
		result.Before, result.After = nil, nil
		for _, w := range writes {
			e.Validated.vouch(w.Object)
		}
		revision, err := e.Log.Commit(ctx, config.Commit{Base: on.Revision(), Changes: writes, Note: e.note(o)})
		var moved *config.Moved
		if errors.As(err, &moved) {
			if _, err := e.Views.WaitFor(ctx, moved.Now); err != nil {
				return Result{}, fmt.Errorf("waiting for revision %d: %w", moved.Now, err)
			}
			continue
		}
		if err != nil {
			return refusedBy(err)
		}
		return e.published(ctx, result, revision)
	}
	return Result{Errors: []Error{{Code: Busy, Message: "others keep changing the configuration; repeat the request"}}}, nil
}

// foresee says what the plan comes to, and what is to be written for it: the
// automatic VIPs that it makes necessary included.
func (e *Engine) foresee(on base, p plan) (Result, []config.Change) {
	writes := p.commits()
	events := make([]config.Event, len(writes))
	for i, w := range writes {
		old, _ := on.stored(w.Key)
		events[i] = config.Event{Old: old, New: w.Object}
		if old == nil && w.Object == nil {
			events[i].Old = &config.Object{Key: w.Key}
		}
	}
	next, _ := on.State.Next(events, on.Revision()+1)
	_, edit := on.State.Preview(events, on.Revision()+1)
	before := e.Snapshots.Latest()
	edit.Source = on.State.Source()
	after, _ := federation.Next(before, edit)
	result := Result{Revision: on.Revision(), Changes: p.changes, Before: before, After: after}
	result.Findings = analyse(before, after, writes)
	return result, append(writes, next.MissingAllocations()...)
}

func (e *Engine) note(o Origin) config.Note {
	return config.Note{
		Author: o.Author, Time: e.Now().UTC(), Message: o.Message, Manager: o.manager, Ticket: o.Ticket, IdempotencyKey: o.IdempotencyKey,
	}
}

// published waits until readers see the revision. That they do not is no error:
// the change is made.
func (e *Engine) published(ctx context.Context, r Result, revision int64) (Result, error) {
	r.Revision = revision
	for _, c := range r.Changes {
		if c.Object != nil && c.Action != config.Unchanged {
			c.Object.Revision = revision
		}
	}
	if _, err := e.Views.WaitFor(ctx, revision); err != nil {
		r.Findings = append(r.Findings, Finding{
			Code: "NOT_YET_VISIBLE", Severity: Warning,
			Message: fmt.Sprintf("revision %d is stored; this hub has not read it yet", revision),
		})
	}
	return r, nil
}

// refusedBy is the result of a commit that failed for good.
func refusedBy(err error) (Result, error) {
	var refused *config.Refused
	switch {
	case errors.As(err, &refused):
		code := StoreRefused
		if refused.Limit == "storage full" {
			code = StorageFull
		}
		return Result{Errors: []Error{{Code: code, Message: refused.Error()}}}, nil
	case errors.Is(err, config.ErrUnavailable):
		return Result{Errors: []Error{{Code: Unavailable, Message: err.Error()}}}, nil
	}
	return Result{}, fmt.Errorf("committing: %w", err)
}

// findPatience is how long the store may take to look for an idempotency key.
const findPatience = 4 * time.Second

// repeated is the result of the same request before, or nil.
func (e *Engine) repeated(ctx context.Context, o Origin) (*Result, error) {
	if o.IdempotencyKey == "" {
		return nil, nil
	}
	looking, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	record, err := e.Log.Find(looking, o.IdempotencyKey)
	switch {
	case errors.Is(err, config.ErrUnavailable):
		r, err := refusedBy(err)
		return &r, err
	case err != nil:
		return nil, fmt.Errorf("looking for the idempotency key: %w", err)
	case record == nil:
		return nil, nil
	}
	r := &Result{Revision: record.Revision}
	for _, c := range record.Changes {
		r.Changes = append(r.Changes, Change{Key: c.Key, Action: c.Action, Object: c.Object})
	}
	return r, nil
}

func deref(r *Result) Result {
	if r == nil {
		return Result{}
	}
	return *r
}
