package transport

import (
	"context"
	"sync"
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

	mu    sync.Mutex
	begun bool
	err   error       // why there is no place
	timer *time.Timer // nil: there is no place
	over  bool
}

// begin returns when the event has its place, for whichever field comes first.
func (a *allowance) begin(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun {
		return a.err
	}
	a.begun = true
	a.err = a.turns.take(ctx, a.caller)
	if a.err != nil {
		return a.err
	}
	a.timer = time.AfterFunc(a.limit, func() {
		a.mu.Lock()
		a.over = true
		a.mu.Unlock()
		a.cancel()
	})
	return nil
}

// end gives the place back.
func (a *allowance) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.turns.end()
	}
}

func (a *allowance) spent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
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
