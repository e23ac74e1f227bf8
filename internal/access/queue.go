package access

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxQueued is how many reviews of one cluster may wait for their turn.
const maxQueued = 2000

var errQueueFull = errors.New("too many of its tokens are being reviewed")

// queue gives out the slots for reviews of one cluster. Sources take turns, so that a caller with one token waits for a
// few reviews of a flooding source, not for all of them. When it is full, the longest line loses its last place.
type queue struct {
	mu     sync.Mutex
	free   int
	lines  map[netip.Prefix][]chan error // nil is sent with a slot
	turns  []netip.Prefix                // the sources with a line, the next one first
	queued int
}

func newQueue(slots int) *queue {
	return &queue{free: slots, lines: map[netip.Prefix][]chan error{}}
}

// take waits for a slot until the timeout. Each slot that was taken must be released.
func (q *queue) take(ctx context.Context, from netip.Prefix, timeout time.Duration) error {
	place := q.enter(from)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	err := errQueueFull
	select {
	case err := <-place:
		return err
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	q.leave(from, place)
	return err
}

func (q *queue) enter(from netip.Prefix) chan error {
	q.mu.Lock()
	defer q.mu.Unlock()
	place := make(chan error, 1)
	if q.free > 0 {
		q.free--
		place <- nil
		return place
	}
	if len(q.lines[from]) == 0 {
		q.turns = append(q.turns, from)
	}
	q.lines[from] = append(q.lines[from], place)
	q.queued++
	if q.queued > maxQueued {
		q.shorten()
	}
	return place
}

// shorten takes the last place of the longest line away.
func (q *queue) shorten() {
	longest := q.turns[0]
	for _, from := range q.turns {
		if len(q.lines[from]) > len(q.lines[longest]) {
			longest = from
		}
	}
	line := q.lines[longest]
	line[len(line)-1] <- errQueueFull
	q.remove(longest, len(line)-1)
}

// leave ends the wait for a slot, and passes on one that came at the last moment.
func (q *queue) leave(from netip.Prefix, place chan error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.lines[from], place); i >= 0 {
		q.remove(from, i)
	} else if err := <-place; err == nil {
		q.next()
	}
}

func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next()
}

// next gives a slot to the source whose turn it is.
func (q *queue) next() {
	if len(q.turns) == 0 {
		q.free++
		return
	}
	from := q.turns[0]
	q.lines[from][0] <- nil
	q.remove(from, 0)
	if len(q.lines[from]) > 0 {
		q.turns = append(q.turns[1:], from)
	}
}

func (q *queue) remove(from netip.Prefix, i int) {
	q.queued--
	q.lines[from] = slices.Delete(q.lines[from], i, i+1)
	if len(q.lines[from]) == 0 {
		delete(q.lines, from)
		q.turns = slices.DeleteFunc(q.turns, func(other netip.Prefix) bool { return other == from })
	}
}
