package transport

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// turns are the places in which events of subscriptions are executed. Each change of the mesh is an event of every
// subscriber: without a bound, all of them are executed at once, and queries and mutations wait for the processor.
// Callers take turns, so that one with many subscriptions keeps no other waiting for longer than one event.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by caller, never empty; closed when the place is given
	next    []string                   // callers that wait, in their order
}

func newTurns(places int) *turns {
	return &turns{free: places, waiting: make(map[string][]chan struct{})}
}

// take waits for a place, which end gives back. end must be called once if there is no error.
func (t *turns) take(ctx context.Context, caller string) error {
	given := t.queue(caller)
	select {
	case <-given:
		return nil
	case <-ctx.Done():
	}
	if !t.leave(caller, given) {
		t.end()
	}
	return fmt.Errorf("waiting for other events to be executed: %w", ctx.Err())
}

func (t *turns) queue(caller string) (given chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	given = make(chan struct{})
	if t.free > 0 { // no caller waits
		t.free--
		close(given)
		return given
	}
	if len(t.waiting[caller]) == 0 {
		t.next = append(t.next, caller)
	}
	t.waiting[caller] = append(t.waiting[caller], given)
	return given
}

// leave takes who waits out of the queue; false: the place was given meanwhile.
func (t *turns) leave(caller string, given chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[caller], given)
	if i < 0 {
		return false
	}
	t.waiting[caller] = slices.Delete(t.waiting[caller], i, i+1)
	if len(t.waiting[caller]) == 0 {
		delete(t.waiting, caller)
		t.next = slices.DeleteFunc(t.next, func(other string) bool { return other == caller })
	}
	return true
}

// end gives the place to the caller whose turn it is.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.next) == 0 {
		t.free++
		return
	}
	caller := t.next[0]
	t.next = t.next[1:]
	waiting := t.waiting[caller]
	close(waiting[0])
	waiting = waiting[1:]
	if len(waiting) == 0 {
		delete(t.waiting, caller)
		return
	}
	t.waiting[caller], t.next = waiting, append(t.next, caller)
}
