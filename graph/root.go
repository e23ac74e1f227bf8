package graph

import (
	"isthmus.dev/isthmus/graph/generated"
	"isthmus.dev/isthmus/graph/model"
)

// root has a resolver for each type whose fields are looked up.
type root struct{ r *resolver }

func (t root) Query() generated.QueryResolver               { return query{t.r} }
func (t root) Mutation() generated.MutationResolver         { return mutation{t.r} }
func (t root) Subscription() generated.SubscriptionResolver { return subscription{t.r} }
func (t root) Service() generated.ServiceResolver           { return serviceResolver{t.r} }

func (t root) ConfigObject() generated.ConfigObjectResolver {
	return objectResolver{clusterOf[model.ConfigObject]{t.r, func(of *model.ConfigObject) string { return value(of.ClusterID()) }}}
}

func (t root) ObjectRef() generated.ObjectRefResolver {
	return refResolver{clusterOf[model.ObjectRef]{t.r, func(of *model.ObjectRef) string { return value(of.ClusterID) }}}
}

func (t root) ProxyConfig() generated.ProxyConfigResolver { return sentResolver{t.r} }
func (t root) ProxyResource() generated.ProxyResourceResolver {
	return sentResourceResolver{}
}
func (t root) Rollout() generated.RolloutResolver { return rolloutResolver{} }
func (t root) ConfigObjectStatus() generated.ConfigObjectStatusResolver {
	return statusResolver{}
}

func (t root) Hub() generated.HubResolver {
	return clusterOf[model.Hub]{t.r, func(of *model.Hub) string { return of.ClusterID }}
}

func (t root) ClusterVIPs() generated.ClusterVIPsResolver {
	return clusterOf[model.ClusterVIPs]{t.r, func(of *model.ClusterVIPs) string { return of.ClusterID }}
}

func (t root) ClusterPortName() generated.ClusterPortNameResolver {
	return clusterOf[model.ClusterPortName]{t.r, func(of *model.ClusterPortName) string { return of.ClusterID }}
}

func (t root) ServicePort() generated.ServicePortResolver {
	return clustersOf[model.ServicePort]{t.r, func(of *model.ServicePort) []string { return of.ClusterIDs }}
}

func (t root) Conflict() generated.ConflictResolver {
	return clustersOf[model.Conflict]{t.r, func(of *model.Conflict) []string { return of.ClusterIDs }}
}

func (t root) Shard() generated.ShardResolver {
	return clusterOf[model.Shard]{t.r, func(of *model.Shard) string { return of.ClusterID }}
}

func (t root) ClusterCount() generated.ClusterCountResolver {
	return clusterOf[model.ClusterCount]{t.r, func(of *model.ClusterCount) string { return value(of.ClusterID) }}
}

func (t root) ProxyRollout() generated.ProxyRolloutResolver {
	return proxyRolloutResolver{clusterOf[model.ProxyRollout]{t.r, func(of *model.ProxyRollout) string { return value(of.ClusterID) }}}
}

func (t root) Endpoint() generated.EndpointResolver {
	return endpointResolver{
		clusterOf[model.Endpoint]{t.r, func(of *model.Endpoint) string { return of.ClusterID() }},
		networkOf[model.Endpoint]{func(of *model.Endpoint) string { return of.NetworkID() }},
	}
}

func (t root) Cluster() generated.ClusterResolver {
	return clusterResolver{t.r, networkOf[model.Cluster]{func(of *model.Cluster) string { return of.NetworkID() }}}
}

func (t root) Proxy() generated.ProxyResolver {
	return proxyResolver{
		clusterOf[model.Proxy]{t.r, func(of *model.Proxy) string { return value(of.ClusterID) }},
		networkOf[model.Proxy]{func(of *model.Proxy) string { return of.NetworkID }},
	}
}

func (t root) Network() generated.NetworkResolver { return networkResolver{t.r} }

func (t root) NetworkGateway() generated.NetworkGatewayResolver {
	return gatewayResolver{
		clusterOf[model.NetworkGateway]{t.r, func(of *model.NetworkGateway) string { return value(of.ClusterID()) }},
		networkOf[model.NetworkGateway]{func(of *model.NetworkGateway) string { return of.NetworkID() }},
	}
}

func (t root) GatewayHealth() generated.GatewayHealthResolver {
	return healthResolver{networkOf[model.GatewayHealth]{func(of *model.GatewayHealth) string { return of.ObserverNetworkID }}}
}

func (t root) Overview() generated.OverviewResolver { return overviewResolver{t.r} }
