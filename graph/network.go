package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// Networks are those of the snapshot of the request.
func (q query) Networks(ctx context.Context, first *int, after *string, last *int, before *string) (*model.NetworkConnection, error) {
	window, err := window("networks", first, after, last, before)
	if err != nil {
		return nil, err
	}
	list := model.List[model.Network]{Name: "networks", Key: model.Network.Key, Items: func(yield func(model.Network) bool) {
		for n := range snapshot(ctx).Networks() {
			if !yield(model.Network{Of: n}) {
				return
			}
		}
	}}
	return &model.NetworkConnection{Page: model.NewPage(list, window)}, nil
}

// Network is one network, or nil.
func (q query) Network(ctx context.Context, networkID string) (*model.Network, error) {
	n, known := snapshot(ctx).Network(federation.NetworkID(networkID))
	if !known {
		return nil, nil
	}
	return &model.Network{Of: n}, nil
}
