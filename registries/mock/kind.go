package mock

import (
	"context"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/provider"
)

// Kind is that of registries without a cluster.
func Kind() provider.Kind {
	return provider.Kind{Provider: federation.Mock, Open: func(c provider.Cluster) (registries.Registry, error) {
		r := New(c.ID, c.Network)
		return provider.Running{
			Do:     func(ctx context.Context, to registries.Sink) error { return r.Run(ctx, to) },
			Active: func() (lastEvent, lastSync time.Time) { return time.Time{}, time.Time{} },
		}, nil
	}}
}
