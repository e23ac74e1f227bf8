package graph

import (
	"cmp"
	"context"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// networkOrders are what networks can be sorted by.
var networkOrders = map[model.NetworkOrderField]func(model.Network) string{
	model.NetworkOrderFieldNetworkID: model.Network.NetworkID,
	model.NetworkOrderFieldClusters:  func(of model.Network) string { return number(len(of.Of.Clusters)) },
	model.NetworkOrderFieldGateways:  func(of model.Network) string { return number(len(of.Of.Gateways)) },
}

// Networks lists the networks that fit.
func (q query) Networks(
	ctx context.Context, first *int, after *string, last *int, before *string, filter *model.NetworkFilter, orderBy *model.NetworkOrder,
) (*model.NetworkConnection, error) {
	var by order[model.Network]
	if orderBy != nil {
		by = newOrder(orderBy.Field, orderBy.Direction, networkOrders)
	}
	window, err := window("networks"+by.name, first, after, last, before)
	if err != nil {
		return nil, err
	}
	list := model.List[model.Network]{Name: "networks", Key: model.Network.Key, Items: func(yield func(model.Network) bool) {
		for n := range snapshot(ctx).Networks() {
			if shown := (model.Network{Of: n}); fitsNetwork(shown, filter) && !yield(shown) {
				return
			}
		}
	}}
	return &model.NetworkConnection{Page: by.page(list, window)}, nil
}

func fitsNetwork(of model.Network, filter *model.NetworkFilter) bool {
	if filter == nil {
		return true
	}
	return (filter.ClusterID == nil || slices.Contains(of.Of.Clusters, federation.ClusterID(*filter.ClusterID))) &&
		(filter.HasUnreachableGateway == nil ||
			*filter.HasUnreachableGateway == slices.ContainsFunc(of.Gateways(), model.NetworkGateway.Unreachable))
}

// Gateways lists the gateways of all networks that fit.
func (q query) Gateways(
	ctx context.Context, first *int, after *string, last *int, before *string, filter *model.GatewayFilter,
) (*model.NetworkGatewayConnection, error) {
	window, err := window("gateways", first, after, last, before)
	if err != nil {
		return nil, err
	}
	var all []model.NetworkGateway
	for of := range snapshot(ctx).Networks() {
		for _, gateway := range (model.Network{Of: of}).Gateways() {
			if fitsGateway(gateway, filter) {
				all = append(all, gateway)
			}
		}
	}
	slices.SortFunc(all, func(a, b model.NetworkGateway) int { return cmp.Compare(a.Key(), b.Key()) })
	return &model.NetworkGatewayConnection{Page: model.NewPage(model.ListOf("gateways", all, model.NetworkGateway.Key), window)}, nil
}

func fitsGateway(of model.NetworkGateway, filter *model.GatewayFilter) bool {
	return filter == nil ||
		fits(filter.NetworkID, of.NetworkID()) && fits(filter.ClusterID, string(of.Cause().Shard.Cluster)) &&
			(filter.Unreachable == nil || *filter.Unreachable == of.Unreachable())
}

// Network is one network, or nil.
func (q query) Network(ctx context.Context, networkID string) (*model.Network, error) {
	n, known := snapshot(ctx).Network(federation.NetworkID(networkID))
	if !known {
		return nil, nil
	}
	return &model.Network{Of: n}, nil
}
