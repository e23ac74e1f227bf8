package etcd

import (
	"context"
	"errors"
	"sync"
	"time"
)

// quietFor is how long the store counts as silent after the last time that nobody
// answered. The members are asked more often.
const quietFor = 5 * tryFor

var errQuiet = errors.New("no member of etcd answers at present")

// quiet tells while no member of etcd answers. Reads for people fail then at once,
// so that an answer of which the store is only one part does not wait for it.
type quiet struct {
	mu    sync.Mutex
	until time.Time
	reads map[*context.CancelCauseFunc]bool // those that are waiting
}

// begin says that nobody answers, until then or until end.
func (q *quiet) begin(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = until
	for cancel := range q.reads {
		(*cancel)(errQuiet)
	}
}

// end says that the store answers.
func (q *quiet) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = time.Time{}
}

// reading returns a context that ends when the store is silent.
func (q *quiet) reading(ctx context.Context, now time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Before(q.until) {
		cancel(errQuiet)
	}
	if q.reads == nil {
		q.reads = map[*context.CancelCauseFunc]bool{}
	}
	q.reads[&cancel] = true
	return ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.reads, &cancel)
		cancel(nil)
	}
}

// reading limits a read for people: it ends at once while the store is silent, and
// when nothing was heard from any member for as long as a first try takes.
func (c *Config) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := c.within(ctx)
	ctx, done := c.quiet.reading(ctx, c.o.Now())
	began := time.Now()
	listen := time.AfterFunc(tryFor, func() {
		if t := c.store.tries; t != nil && t.silentSince(began) {
			c.quiet.begin(c.o.Now().Add(quietFor))
		}
	})
	return ctx, func() {
		listen.Stop()
		done()
		cancel()
	}
}
