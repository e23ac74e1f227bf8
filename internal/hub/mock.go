package hub

import (
	"context"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
	"isthmus.dev/isthmus/registries/mock"
)

func openMock(_ surroundings, c clusterConfig) opener {
	return func(federation.Identity) (registries.Registry, error) {
		r := mock.New(c.ID, c.Network)
		return running{
			run:      func(ctx context.Context, to registries.Sink) error { return r.Run(ctx, to) },
			activity: func() (lastEvent, lastSync time.Time) { return time.Time{}, time.Time{} },
		}, nil
	}
}
