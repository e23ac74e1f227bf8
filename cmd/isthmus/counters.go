package main

import (
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries"
)

// counters give the API what is not part of a snapshot.
type counters struct{ *registries.Supervisor }

// Counters is part of graph.Counters.
func (c counters) Counters(id federation.ClusterID) (lastEvent, lastSync time.Time) {
	return c.Activity(id)
}
