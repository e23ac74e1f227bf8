package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

type allowanceKey struct{}

// allowance is what one event of a subscription may take: a place to be executed in, and time. Both begin with the first
// field that is resolved: waiting for the event is free, and the place is waited for without a limit.
type allowance struct {
	turns  *turns
	caller string
	limit  time.Duration
	cancel context.CancelFunc

	once  sync.Once   // of begin, or of an end without it
	err   error       // why there is no place
	timer *time.Timer // nil: there is no place
	spent atomic.Bool // the time has ended
}

// begin returns when the event has its place. All fields wait for the first one.
func (a *allowance) begin(ctx context.Context) error {
	a.once.Do(func() {
		a.err = a.turns.take(ctx, a.caller)
		if a.err == nil {
			a.timer = time.AfterFunc(a.limit, func() {
				a.spent.Store(true)
				a.cancel()
			})
		}
	})
	return a.err
}

// end gives the place back. No field is resolved after it.
func (a *allowance) end() {
	a.once.Do(func() { a.err = context.Canceled })
	if a.timer != nil {
		a.timer.Stop()
		a.turns.end()
	}
}

// timed begins the allowance of an event when its first field is resolved.
func timed(middleware graphql.FieldMiddleware) graphql.FieldMiddleware {
	return func(ctx context.Context, next graphql.Resolver) (any, error) {
		if allowed, ok := ctx.Value(allowanceKey{}).(*allowance); ok {
			if err := allowed.begin(ctx); err != nil {
				return nil, err
			}
		}
		return middleware(ctx, next)
	}
}
