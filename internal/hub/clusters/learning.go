package clusters

import (
	"context"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
)

// learning runs the registry of a cluster whose identity is not recorded yet. Once the
// registry knows its UID, learn records it beside the run.
func learning(ctx context.Context, inner registries.Registry, to registries.Sink, learn func(ctx context.Context, uid string)) error {
	sink := &learningSink{Sink: to, learnt: make(chan string, 1)}
	return provider.Beside(ctx, func(ctx context.Context) {
		select {
		case uid := <-sink.learnt:
			learn(ctx, uid)
		case <-ctx.Done():
		}
	}, func(ctx context.Context) error { return inner.Run(ctx, sink) })
}

// learningSink tells who the cluster is once its registry knows.
type learningSink struct {
	registries.Sink
	learnt chan string
	once   sync.Once
}

// Update is part of registries.Sink.
func (s *learningSink) Update(e federation.Edit) {
	s.Sink.Update(e)
	if e.Identity != nil && e.Identity.UID != "" {
		s.once.Do(func() { s.learnt <- e.Identity.UID })
	}
}
