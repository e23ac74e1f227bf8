package status

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/internal/retry"
	"isthmus.dev/isthmus/xds"
	"isthmus.dev/isthmus/xds/envoy/supported"
)

// Delivery tells graph what the fleet and xds know of proxies.
type Delivery struct {
	Server *xds.Server
	Fleet  *fleet.Fleet
}

// Rollout is part of graph.Rollouts.
func (d Delivery) Rollout(after, upTo uint64) ([]graph.ProxyState, <-chan struct{}) {
	now := d.caughtUp(upTo)
	return states(now.Rollout(after + 1)), now.Superseded()
}

// catchUp is how long streams may take to find out what a change means for them.
const catchUp = 500 * time.Millisecond

// catchUpPace is how long a wait lets proxies report before it looks at them again.
const catchUpPace = 2 * time.Millisecond

// caughtUp is the fleet once all streams know what the version means for them; after
// that time those that do not count as pending, whether it means something or not.
func (d Delivery) caughtUp(version uint64) *fleet.Value {
	limit := time.NewTimer(catchUp)
	defer limit.Stop()
	for {
		now := d.Fleet.Latest()
		if now.IsAt(version) {
			return now
		}
		select {
		case <-now.Superseded():
		case <-limit.C:
			return now
		}
		retry.Sleep(context.Background(), catchUpPace) // each build makes another value, too
	}
}

// Delivery is part of graph.Deliveries.
func (d Delivery) Delivery(of *federation.Snapshot, proxies *fleet.Value, key federation.ObjectKey) (graph.Delivery, bool) {
	if supported.Uncounted(key.Of()) {
		return graph.Delivery{}, false
	}
	a := d.Server.Object(of, proxies, key)
	return graph.Delivery{
		Acked: a.Accepted, Unanswered: a.Delivered, Rejected: a.Refused, Pending: a.Waiting,
		Proxies: func() []graph.ProxyState { return states(slices.Collect(a.Proxies())) },
	}, true
}

// rolloutStates are the states in the words of the API.
var rolloutStates = map[fleet.RolloutState]model.RolloutState{
	fleet.Accepted: model.RolloutStateAcked, fleet.Delivered: model.RolloutStateDelivered,
	fleet.Waiting: model.RolloutStatePending, fleet.Rejected: model.RolloutStateRejected,
}

func states(all []fleet.Progress) []graph.ProxyState {
	found := make([]graph.ProxyState, len(all))
	for i, p := range all {
		found[i] = graph.ProxyState{ProxyID: p.ProxyID, State: rolloutStates[p.State], Error: p.Error}
	}
	return found
}

// Preview is part of graph.Previewer.
func (d Delivery) Preview(ctx context.Context, before, after *federation.Snapshot) ([]fleet.ProxyID, []model.PreviewResource, error) {
	p, err := d.Server.Preview(ctx, before, after)
	if err != nil {
		return nil, nil, err
	}
	resources := make([]model.PreviewResource, len(p.Resources))
	for i, r := range p.Resources {
		difference := schema.Diff(object(r.Before), object(r.After))
		resources[i] = model.PreviewResource{TypeURL: string(r.Type), Name: r.Name, Action: previewAction(r), Diff: &difference}
	}
	return p.Proxies, resources, nil
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
