package graph

import (
	"context"
	"slices"
	"strconv"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

type query struct{ *resolver }

func (q query) Hub(ctx context.Context) (model.Hub, error) {
	hub := q.resolver.Hub
	hub.SnapshotVersion = strconv.FormatUint(snapshot(ctx).Version(), 10)
	return hub, nil
}

// Node finds an object by its ID; what is not an ID is nothing's.
func (q query) Node(ctx context.Context, id string) (model.Node, error) {
	kind, name, _ := model.ParseID(id)
	switch kind {
	case model.KindCluster:
		if found, err := q.Cluster(ctx, name); found != nil {
			return found, err
		}
	case model.KindService:
		if found, ok := snapshot(ctx).Service(model.ServiceKey(name)); ok {
			return model.Service{From: snapshot(ctx), Of: found}, nil
		}
	case model.KindProxy:
		if found, err := q.Proxy(ctx, name); found != nil {
			return found, err
		}
	}
	return nil, nil
}

func (q query) Clusters(ctx context.Context, first *int, after *string, last *int, before *string) (model.ClusterConnection, error) {
	window, err := window("clusters", first, after, last, before)
	return model.ClusterConnection{Page: model.NewPage(q.clusters(snapshot(ctx)), window)}, err
}

func (q query) Cluster(ctx context.Context, clusterID string) (*model.Cluster, error) {
	found, ok := snapshot(ctx).Cluster(federation.ClusterID(clusterID))
	if !ok {
		return nil, nil
	}
	cluster := q.cluster(snapshot(ctx), found)
	return &cluster, nil
}

func (q query) Services(ctx context.Context, first *int, after *string, last *int, before *string, filter *model.ServiceFilter) (model.ServiceConnection, error) {
	window, err := window("services", first, after, last, before)
	return model.ServiceConnection{Page: model.NewPage(services(snapshot(ctx), window.After, filter), window)}, err
}

// Service finds a service by hostname, and namespace where that is not enough.
func (q query) Service(ctx context.Context, hostname string, namespace *string) (*model.Service, error) {
	from := snapshot(ctx)
	if namespace != nil {
		found, _ := from.Service(federation.ServiceKey{Hostname: federation.Hostname(hostname), Namespace: *namespace})
		return service(from, found), nil
	}
	found, err := from.Lookup(federation.Hostname(hostname))
	if err != nil {
		return nil, transport.Errorf(transport.BadUserInput, "%s", err)
	}
	return service(from, found), nil
}

func service(from *federation.Snapshot, found *federation.Service) *model.Service {
	if found == nil {
		return nil
	}
	return &model.Service{From: from, Of: found}
}

func (q query) Proxies(_ context.Context, first *int, after *string, last *int, before *string) (model.ProxyConnection, error) {
	window, err := window("proxies", first, after, last, before)
	all := q.proxies()
	list := model.List[model.Proxy]{
		Kind: "proxies", Items: slices.Values(all), Key: func(p model.Proxy) string { return p.NodeID },
		Count: func() int { return len(all) },
	}
	return model.ProxyConnection{Page: model.NewPage(list, window)}, err
}

func (q query) Proxy(_ context.Context, nodeID string) (*model.Proxy, error) {
	all := q.proxies()
	i := slices.IndexFunc(all, func(p model.Proxy) bool { return p.NodeID == nodeID })
	if i < 0 {
		return nil, nil
	}
	return &all[i], nil
}

func (q query) proxies() []model.Proxy {
	if q.resolver.Options.Proxies == nil {
		return nil
	}
	return q.resolver.Options.Proxies.Proxies()
}
