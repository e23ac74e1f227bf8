package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// Networks are those of the snapshot of the request.
func (q query) Networks(ctx context.Context) ([]model.Network, error) {
	all := []model.Network{}
	for n := range snapshot(ctx).Networks() {
		all = append(all, model.Network{Of: n})
	}
	return all, nil
}

// Network is one network, or nil.
func (q query) Network(ctx context.Context, networkID string) (*model.Network, error) {
	n, known := snapshot(ctx).Network(federation.NetworkID(networkID))
	if !known {
		return nil, nil
	}
	return &model.Network{Of: n}, nil
}
