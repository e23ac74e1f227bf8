package attach

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// turns let one request at a time work with a name. Requests for different clusters do
// not wait for each other: a cluster that does not answer delays only its own.
type turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{} // closed when the name is free
}

// take waits for all the names. A caller that takes a name while it holds another must take it
// last, or all requests could wait for each other.
func (t *turns) take(ctx context.Context, names ...string) (release func(), err error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for i, name := range names {
		if err := t.takeOne(ctx, name); err != nil {
			t.release(names[:i])
			return nil, err
		}
	}
	return func() { t.release(names) }, nil
}

func (t *turns) takeOne(ctx context.Context, name string) error {
	for {
		t.mu.Lock()
		free, taken := t.taken[name]
		if !taken {
			t.taken[name] = make(chan struct{})
		}
		t.mu.Unlock()
		if !taken {
			return nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return fmt.Errorf("waiting for other requests: %w", ctx.Err())
		}
	}
}

func (t *turns) release(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		close(t.taken[name])
		delete(t.taken, name)
	}
}
