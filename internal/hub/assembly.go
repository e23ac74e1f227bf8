package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// assembly is everything, joined; what is in core goes on until the edge has drained.
type assembly struct {
	core, edge map[string]func(context.Context) error
	ready      *readiness
	endWithin  time.Duration // from when the end was asked for
}

// run runs everything until the context ends or a part fails; then the edge
// drains, and what it needs ends after it.
func (h *assembly) run(ctx context.Context) error {
	ctx, stopEdge := context.WithCancel(ctx)
	defer stopEdge()
	coreCtx, stopCore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCore()
	var core, edge sync.WaitGroup
	failed := make(chan error, len(h.core)+len(h.edge)) // as they come: some parts may never end
	start := func(group *sync.WaitGroup, ctx context.Context, parts map[string]func(context.Context) error) {
		for name, run := range parts {
			group.Go(func() {
				if err := run(ctx); err != nil {
					failed <- fmt.Errorf("%s: %w", name, err)
					stopEdge()
				}
			})
		}
	}
	start(&core, coreCtx, h.core)
	start(&edge, ctx, h.edge)
	<-ctx.Done()
	h.ready.drain()
	over := make(chan struct{})
	go func() {
		defer close(over)
		edge.Wait()
		stopCore()
		core.Wait()
	}()
	err := h.awaitEnd(over)
	select {
	case first := <-failed:
		return errors.Join(first, err)
	default:
		return err
	}
}

// awaitEnd waits for all parts, but not for ever: what asks an embedded etcd that has failed, because the disk is full, never
// gets an answer, whatever its context. A hub that serves no client must end, so that it is started again.
func (h *assembly) awaitEnd(over <-chan struct{}) error {
	timer := time.NewTimer(h.endWithin)
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-timer.C:
		return fmt.Errorf("not all of the hub ended within %s", h.endWithin)
	}
}
