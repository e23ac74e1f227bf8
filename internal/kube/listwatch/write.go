package listwatch

import (
	"context"

	"k8s.io/client-go/dynamic"
)

// Write calls write after the cluster has proven itself again, with a context that ends when
// the cluster does not prove itself any more. While the gate is closed it fails at once.
func (c *Cluster) Write(ctx context.Context, write func(context.Context, dynamic.Interface) error) error {
	if err := c.why(nil); err != nil {
		return UnprovenError{err}
	}
	s, err := c.enter(ctx, func(error) {})
	if err == nil {
		err = c.prove(ctx, s)
	}
	if err != nil {
		return UnprovenError{c.why(err)}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.lost:
			cancel(UnprovenError{ErrRelist})
		case <-over:
		}
	}()
	return write(ctx, c.dynamic)
}
