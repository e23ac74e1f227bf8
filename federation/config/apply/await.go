package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// patience is how long a change waits for this hub to read what the store has:
// others wait for their turn meanwhile.
const patience = 10 * time.Second

// catchUpPatience is how long a request waits for this hub to read what another
// hub has just committed.
const catchUpPatience = 2 * time.Second

// catchUp waits for this hub to read the revision, if the store has it: the caller may
// have got it from another hub. If it returns a result, that is the refusal.
func (e *Engine) catchUp(ctx context.Context, revision int64) (*Result, error) {
	if (base{e.Views.Latest()}).Revision() >= revision {
		return nil, nil
	}
	newest, err := e.Log.Records(ctx, 0, 1)
	switch {
	case errors.Is(err, config.ErrUnavailable):
		r, err := refusedBy(err)
		return &r, err
	case err != nil:
		return nil, fmt.Errorf("looking for revision %d: %w", revision, err)
	case len(newest) == 0 || newest[0].Revision < revision:
		return nil, nil // it was not made: the expectation is wrong
	}
	limited, cancel := context.WithTimeout(ctx, catchUpPatience)
	defer cancel()
	if e.await(limited, func(v base) bool { return v.Revision() >= revision }) {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("waiting for revision %d: %w", revision, err)
	}
	return &Result{Errors: []Error{{Code: Unavailable, Message: fmt.Sprintf(
		"the configuration is at revision %d and this hub has not read %d yet: nothing was changed; repeat later",
		newest[0].Revision, revision)}}}, nil
}

// newest is the newest revision that the request expects.
func newest(whole *int64, each map[federation.ObjectKey]int64) int64 {
	var revision int64
	if whole != nil {
		revision = *whole
	}
	for _, r := range each {
		revision = max(revision, r)
	}
	return revision
}

// await waits until the view is as it should be, and reports whether it came to be.
func (e *Engine) await(ctx context.Context, holds func(base) bool) bool {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		v := e.Views.Latest()
		if holds(base{v}) {
			return true
		}
		select {
		case <-v.Superseded():
		case <-limit.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// awaitVisible waits until readers see the revision of the result.
func (e *Engine) awaitVisible(ctx context.Context, r *Result) {
	if !e.await(ctx, func(v base) bool { return v.Revision() >= r.Revision }) {
		r.Findings = append(r.Findings, Finding{
			Code: "NOT_YET_VISIBLE", Severity: Warning,
			Message: fmt.Sprintf("revision %d is stored; this hub has not read it yet", r.Revision),
		})
	}
}

// awaitMove waits until the view is not the one any more that was too old. A
// result is why it stayed.
func (e *Engine) awaitMove(ctx context.Context, on base, moved *config.Moved) (*Result, error) {
	if e.await(ctx, func(v base) bool { return v.Revision() != on.Revision() }) {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("waiting for revision %d: %w", moved.Now, err)
	}
	return &Result{Errors: []Error{{Code: Unavailable, Message: fmt.Sprintf(
		"the configuration is at revision %d and this hub has read %d only: nothing was changed; repeat later", moved.Now, on.Revision())}}}, nil
}

// inDoubt is the result of a commit that was not acknowledged.
func inDoubt(o Origin, err error) *Result {
	next := "it may have been made all the same: look at the history before you repeat it, or repeat requests that have an idempotency key"
	if o.IdempotencyKey != "" {
		next = "repeat it with the same idempotency key: it is made once"
	}
	return &Result{Errors: []Error{{Code: Unavailable, Message: err.Error() + "; " + next}}}
}

// refusedBy is the result of a commit that failed for good.
func refusedBy(err error) (Result, error) {
	var refused *config.Refused
	switch {
	case errors.As(err, &refused):
		code := StoreRefused
		switch refused.Limit {
		case "storage full":
			code = StorageFull
		case "storage not writable":
			code = StorageNotWritable
		}
		return Result{Errors: []Error{{Code: code, Field: refused.Field, Message: refused.Error()}}}, nil
	case errors.Is(err, config.ErrUnavailable):
		return Result{Errors: []Error{{Code: Unavailable, Message: err.Error()}}}, nil
	}
	return Result{}, fmt.Errorf("committing: %w", err)
}
