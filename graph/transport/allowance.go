package transport

import (
	"context"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

type allowanceKey struct{}

// allowance is the time that one event of a subscription may take. It begins
// with the first field that is resolved: waiting for the event is free.
type allowance struct {
	limit  time.Duration
	cancel context.CancelFunc

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

func (a *allowance) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		return
	}
	a.timer = time.AfterFunc(a.limit, func() {
		a.mu.Lock()
		a.over = true
		a.mu.Unlock()
		a.cancel()
	})
}

func (a *allowance) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
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
			allowed.begin()
		}
		return middleware(ctx, next)
	}
}
