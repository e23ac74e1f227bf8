package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// clusterOf finds the cluster that a field clusterID beside it names.
type clusterOf[T any] struct {
	*resolver
	id func(*T) string
}

// Cluster is the attached cluster, or nil.
func (r clusterOf[T]) Cluster(ctx context.Context, of *T) (*model.Cluster, error) {
	return clusterNamed(r.resolver, snapshot(ctx), federation.ClusterID(r.id(of))), nil
}

// clusterNamed is the attached cluster of that ID, or nil.
func clusterNamed(r *resolver, in *federation.Snapshot, id federation.ClusterID) *model.Cluster {
	found, ok := in.Cluster(id)
	if !ok {
		return nil
	}
	shown := r.cluster(in, found)
	return &shown
}

// clustersOf finds the clusters that a field clusterIDs beside it names.
type clustersOf[T any] struct {
	*resolver
	ids func(*T) []string
}

// Clusters are those that are attached.
func (r clustersOf[T]) Clusters(ctx context.Context, of *T) ([]model.Cluster, error) {
	return r.attached(ctx, of), nil
}

func (r clustersOf[T]) attached(ctx context.Context, of *T) []model.Cluster {
	all := []model.Cluster{}
	for _, id := range r.ids(of) {
		if found := clusterNamed(r.resolver, snapshot(ctx), federation.ClusterID(id)); found != nil {
			all = append(all, *found)
		}
	}
	return all
}

// networkOf finds the network that a field networkID beside it names.
type networkOf[T any] struct{ id func(*T) string }

// Network is the network, or nil.
func (r networkOf[T]) Network(ctx context.Context, of *T) (*model.Network, error) {
	found, ok := snapshot(ctx).Network(federation.NetworkID(r.id(of)))
	if !ok {
		return nil, nil
	}
	return &model.Network{Of: found}, nil
}

type endpointResolver struct {
	clusterOf[model.Endpoint]
	networkOf[model.Endpoint]
}

// Service is the service that the endpoint belongs to.
func (endpointResolver) Service(ctx context.Context, of *model.Endpoint) (*model.Service, error) {
	found, _ := snapshot(ctx).Service(of.ServiceKey())
	return service(snapshot(ctx), found), nil
}

// Gateways are those of the endpoint's network.
func (endpointResolver) Gateways(ctx context.Context, of *model.Endpoint) ([]model.NetworkGateway, error) {
	if found, ok := snapshot(ctx).Network(of.Of.Network); ok {
		return model.Network{Of: found}.Gateways(), nil
	}
	return []model.NetworkGateway{}, nil
}

// Drain is the Drain that takes requests away from the endpoint, or nil.
func (endpointResolver) Drain(ctx context.Context, of *model.Endpoint) (*model.ConfigObject, error) {
	service, ok := snapshot(ctx).Service(of.ServiceKey())
	if !ok {
		return nil, nil
	}
	drain, _ := service.DrainOf(of.Source, of.Of)
	return objectOf(ctx, drain.Drain), nil
}

type proxyRolloutResolver struct{ clusterOf[model.ProxyRollout] }

// Proxy is the latest stream of the proxy, or nil.
func (proxyRolloutResolver) Proxy(ctx context.Context, of *model.ProxyRollout) (*model.Proxy, error) {
	latest := connected(ctx).ByProxy(fleet.ProxyID{Cluster: federation.ClusterID(value(of.ClusterID)), NodeID: of.NodeID})
	if latest == nil {
		return nil, nil
	}
	shown := model.NewProxy(snapshot(ctx), latest)
	return &shown, nil
}

type gatewayResolver struct {
	clusterOf[model.NetworkGateway]
	networkOf[model.NetworkGateway]
}

// ConfigObject is the Network object that declares the gateway, or nil.
func (gatewayResolver) ConfigObject(ctx context.Context, of *model.NetworkGateway) (*model.ConfigObject, error) {
	return objectOf(ctx, of.Cause().Object), nil
}

// FromNetworks are the networks that exist of those whose proxies may enter through the gateway.
func (gatewayResolver) FromNetworks(ctx context.Context, of *model.NetworkGateway) ([]model.Network, error) {
	all := []model.Network{}
	for _, id := range of.FromNetworkIDs() {
		if found, ok := snapshot(ctx).Network(federation.NetworkID(id)); ok {
			all = append(all, model.Network{Of: found})
		}
	}
	return all, nil
}

type healthResolver struct {
	observer networkOf[model.GatewayHealth]
}

// ObserverNetwork is the network from which the gateway is probed.
func (r healthResolver) ObserverNetwork(ctx context.Context, of *model.GatewayHealth) (*model.Network, error) {
	return r.observer.Network(ctx, of)
}

type networkResolver struct{ *resolver }

// ConfigObject is the Network object of that ID, or nil.
func (networkResolver) ConfigObject(ctx context.Context, of *model.Network) (*model.ConfigObject, error) {
	return objectOf(ctx, meshKey(federation.NetworkKind, of.NetworkID())), nil
}

// RefusedGateways are those that are not used.
func (r networkResolver) RefusedGateways(ctx context.Context, of *model.Network) ([]model.RefusedGateway, error) {
	all := make([]model.RefusedGateway, len(of.Of.Refused))
	for i, refused := range of.Of.Refused {
		all[i] = model.RefusedGateway{Gateway: refused.Gateway, Message: refused.Why, ConfigObject: objectOf(ctx, refused.Cause.Object)}
		if id := refused.Cause.Shard.Cluster; id != "" {
			named := string(id)
			all[i].ClusterID, all[i].Cluster = &named, clusterNamed(r.resolver, snapshot(ctx), id)
		}
	}
	return all, nil
}

// Clusters are the clusters whose endpoints are in the network.
func (r networkResolver) Clusters(
	ctx context.Context, of *model.Network, first *int, after *string, last *int, before *string,
) (model.ClusterConnection, error) {
	name := "clusters of network " + of.NetworkID()
	window, err := window(name, first, after, last, before)
	list := clusterList(name, func(yield func(*federation.Cluster) bool) {
		for _, id := range of.Of.Clusters {
			if found, ok := snapshot(ctx).Cluster(id); ok && !yield(found) {
				return
			}
		}
	})
	return model.ClusterConnection{Page: clusterPage(ctx, r.resolver, model.NewPage(list, window))}, err
}
