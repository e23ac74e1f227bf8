package main

import (
	"context"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/xds"
)

const (
	// inspection is how long streams may take to say how far they are.
	inspection = 2 * time.Second
	// nextLook is when to look again at how far a change is.
	nextLook = 50 * time.Millisecond
)

// delivery tells graph what xds knows of proxies.
type delivery struct{ server *xds.Server }

// Rollout is part of graph.Rollouts.
func (d delivery) Rollout(after, _ uint64) ([]graph.ProxyState, <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), inspection)
	defer cancel()
	changed := make(chan struct{})
	time.AfterFunc(nextLook, func() { close(changed) })
	return states(d.server.Rollout(ctx, after+1)), changed
}

// Delivery is part of graph.Deliveries.
func (d delivery) Delivery(key federation.ObjectKey) ([]graph.ProxyState, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), inspection)
	defer cancel()
	return states(d.server.Object(ctx, key)), true
}

// states are those of the proxies that are concerned, each once: of several
// streams of a proxy the one that is behind.
func states(reports []xds.Report) []graph.ProxyState {
	var found []graph.ProxyState
	for _, r := range reports {
		if r.Standing == xds.Unconcerned {
			continue
		}
		state := graph.ProxyState{NodeID: r.Proxy.NodeID, State: model.RolloutState(r.Standing), Error: r.Error}
		last := len(found) - 1
		switch {
		case last < 0 || found[last].NodeID != state.NodeID:
			found = append(found, state)
		case xds.Worse(xds.Standing(found[last].State), r.Standing) == r.Standing:
			found[last] = state
		}
	}
	return found
}
