package main

import (
	"context"
	"encoding/json"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
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

// Preview is part of graph.Previewer.
func (d delivery) Preview(ctx context.Context, before, after *federation.Snapshot) ([]string, []model.PreviewResource, error) {
	p, err := d.server.Preview(ctx, before, after)
	if err != nil {
		return nil, nil, err
	}
	resources := make([]model.PreviewResource, len(p.Resources))
	for i, r := range p.Resources {
		difference := schema.Diff(object(r.Before), object(r.After))
		resources[i] = model.PreviewResource{TypeURL: string(r.Type), Name: r.Name, Action: previewAction(r), Diff: &difference}
	}
	return p.NodeIDs, resources, nil
}

func previewAction(r xds.PreviewedResource) model.ChangeAction {
	switch {
	case r.Before == nil:
		return model.ChangeActionCreate
	case r.After == nil:
		return model.ChangeActionDelete
	}
	return model.ChangeActionUpdate
}

// object is a resource as a value; nil where there is none.
func object(text []byte) map[string]any {
	var value map[string]any
	if json.Unmarshal(text, &value) != nil {
		return nil
	}
	return value
}
