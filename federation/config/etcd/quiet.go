package etcd

import (
	"context"
	"errors"
	"sync"
	"time"
)

// quietFor is how long the store counts as silent after the last time that no member
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

// begin says that no member answers, until then or until end.
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

// reading returns a context that ends when the store becomes silent, or an error
// while it is.
func (q *quiet) reading(ctx context.Context, now time.Time) (context.Context, func(), error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Before(q.until) {
		return nil, nil, errQuiet
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if q.reads == nil {
		q.reads = map[*context.CancelCauseFunc]bool{}
	}
	q.reads[&cancel] = true
	return ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.reads, &cancel)
		cancel(nil)
	}, nil
}

// reading limits a read for people. While the store is silent it is an error, and
// nothing is sent. A read that is under way ends when the store turns out to be silent.
// Of an embedded etcd that has ended, the cause is told, however silent it was before.
func (h *health) reading(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if why := h.store.cause(); why != nil {
		return nil, nil, why
	}
	ctx, done, err := h.quiet.reading(ctx, h.o.Now())
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := h.o.within(ctx)
	end := func() { cancel(); done() }
	if err := h.step.reach("read"); err != nil {
		end()
		return nil, nil, err
	}
	h.listen(ctx, time.Now())
	return ctx, end, nil
}

// looks is how often in a row nothing may have come from any member before the store
// counts as silent: one more than once, because a machine that stops for a moment
// stops the members, too.
const looks = 2

// leastLook is for a store nearby, which answers in milliseconds.
const leastLook = 125 * time.Millisecond

// checkPause is the time between two checks, some round trips to the member that is the
// farthest away.
func checkPause(roundTrip time.Duration) time.Duration {
	return min(max(leastLook, 3*roundTrip), tryFor/looks)
}

// listen says that the store is silent if nothing came from any member since the read
// began. A member that runs confirms what it receives at once, however long it takes
// to answer. What came may also be older than the read: the member may still be frozen,
// and is if it says nothing for as long as a slow answer takes.
func (h *health) listen(read context.Context, began time.Time) {
	h.check(read, began, checkPause(time.Duration(h.roundTrip.Load())), looks)
}

// check checks whether anything came since then, as often as is left.
func (h *health) check(read context.Context, since time.Time, every time.Duration, left int) {
	time.AfterFunc(every, func() {
		t := h.store.tries
		switch {
		case t == nil || read.Err() != nil:
		case !t.silentSince(since):
			h.check(read, time.Now(), tryFor, looks)
		case left > 1:
			h.check(read, since, every, left-1)
		default:
			h.quiet.begin(h.o.Now().Add(quietFor))
		}
	})
}
