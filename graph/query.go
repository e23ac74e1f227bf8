package graph

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

type query struct{ *resolver }

func (q query) Hub(ctx context.Context) (model.Hub, error) {
	hub := q.Options.Hub
	hub.SnapshotVersion = strconv.FormatUint(snapshot(ctx).Version(), 10)
	if seen, err := configured(ctx); err == nil {
		revision := strconv.FormatInt(seen.Revision(), 10)
		hub.Revision = &revision
	}
	hub.Ready, hub.ReadinessReasons = true, []string{}
	if q.Start != nil {
		ready, reasons := q.Start.Check()
		hub.Ready, hub.ReadinessReasons = ready, append(hub.ReadinessReasons, reasons...)
	}
	return hub, nil
}

// Node finds an object by its ID; what is not an ID is nothing's.
func (q query) Node(ctx context.Context, id string) (model.Node, error) {
	return q.node(ctx, id, readRevisions(ctx, q.Config.History, revisionsIn([]string{id})))
}

func (q query) node(ctx context.Context, id string, of revisions) (model.Node, error) {
	kind, name, _ := model.ParseID(id)
	if model.ID(kind, name) != id {
		return nil, nil
	}
	switch kind {
	case model.KindCluster:
		if of, ok := snapshot(ctx).Cluster(federation.ClusterID(name)); ok {
			return q.cluster(snapshot(ctx), of), nil
		}
	case model.KindService:
		of, ok := snapshot(ctx).Service(model.ServiceKey(name))
		if found := (model.Service{From: snapshot(ctx), Of: of}); ok && found.ID() == id {
			return found, nil
		}
	case model.KindConfigObject:
		if found, ok := objectNamed(ctx, model.ObjectKey(name)); ok && found.ID() == id {
			return found, nil
		}
	case model.KindNetwork:
		if of, ok := snapshot(ctx).Network(federation.NetworkID(name)); ok {
			return model.Network{Of: of}, nil
		}
	case model.KindGateway:
		return gatewayNamed(snapshot(ctx), id), nil
	case model.KindEndpoint:
		return endpointNamed(snapshot(ctx), id), nil
	case model.KindRevision:
		return of.named(name)
	case model.KindProxy:
		if found, ok := stream(ctx, model.ProxyKey(name)); ok {
			return found, nil
		}
	}
	return nil, nil
}

// clusterOrders are what clusters can be sorted by.
var clusterOrders = map[model.ClusterOrderField]func(*federation.Cluster) string{
	model.ClusterOrderFieldClusterID: clusterKey,
	model.ClusterOrderFieldPhase: func(of *federation.Cluster) string {
		return number(slices.Index(model.AllClusterPhase, model.PhaseOf(of)))
	},
	model.ClusterOrderFieldServices:  func(of *federation.Cluster) string { return number(of.Services) },
	model.ClusterOrderFieldEndpoints: func(of *federation.Cluster) string { return number(of.Endpoints) },
}

// Clusters lists the clusters that fit.
func (q query) Clusters(
	ctx context.Context, first *int, after *string, last *int, before *string, filter *model.ClusterFilter, orderBy *model.ClusterOrder,
) (*model.ClusterConnection, error) {
	var by order[*federation.Cluster]
	if orderBy != nil {
		by = newOrder(orderBy.Field, orderBy.Direction, clusterOrders)
	}
	window, err := window("clusters"+by.name, first, after, last, before)
	if err != nil {
		return nil, err
	}
	list := clusterList("clusters", fitting(snapshot(ctx).Clusters(), func(of *federation.Cluster) bool { return fitsCluster(of, filter) }))
	return &model.ClusterConnection{Page: clusterPage(ctx, q.resolver, by.page(list, window))}, nil
}

func fitsCluster(of *federation.Cluster, filter *model.ClusterFilter) bool {
	return filter == nil || (filter.Phase == nil || *filter.Phase == model.PhaseOf(of)) &&
		(filter.Provider == nil || *filter.Provider == model.ProviderOf(of)) && fits(filter.NetworkID, string(of.Network()))
}

func (q query) Cluster(ctx context.Context, clusterID string) (*model.Cluster, error) {
	found, ok := snapshot(ctx).Cluster(federation.ClusterID(clusterID))
	if !ok {
		return nil, nil
	}
	cluster := q.cluster(snapshot(ctx), found)
	return &cluster, nil
}

func (q query) Services(
	ctx context.Context, first *int, after *string, last *int, before *string,
	filter *model.ServiceFilter, orderBy *model.ServiceOrder, _ *string,
) (*model.ServiceConnection, error) {
	var by order[model.Service]
	if orderBy != nil {
		by = newOrder(orderBy.Field, orderBy.Direction, serviceOrders)
	}
	window, err := window("services"+by.name, first, after, last, before)
	if err != nil {
		return nil, err
	}
	return &model.ServiceConnection{Page: by.page(services(ctx, snapshot(ctx), filter), window)}, nil
}

// serviceOrders are what services can be sorted by.
var serviceOrders = map[model.ServiceOrderField]func(model.Service) string{
	model.ServiceOrderFieldHostname:  model.Service.Hostname,
	model.ServiceOrderFieldEndpoints: func(of model.Service) string { return number(of.Of.CountEndpoints()) },
	model.ServiceOrderFieldConflicts: func(of model.Service) string { return number(len(of.Of.Conflicts)) },
}

// Service finds a service by hostname, and namespace where that is not enough.
func (q query) Service(ctx context.Context, hostname string, namespace *string, _ *string) (*model.Service, error) {
	from, host := snapshot(ctx), lookedUp(hostname)
	if namespace != nil {
		found, _ := from.Service(federation.ServiceKey{Hostname: host, Namespace: *namespace})
		return service(from, found), nil
	}
	found, err := from.Services().Lookup(host)
	if err != nil {
		return nil, transport.BadArgument("hostname", "%s", err)
	}
	return service(from, found), nil
}

// lookedUp is a hostname as snapshots have it.
func lookedUp(hostname string) federation.Hostname {
	return federation.Hostname(strings.ToLower(strings.TrimSuffix(hostname, ".")))
}

func service(from *federation.Snapshot, found *federation.Service) *model.Service {
	if found == nil {
		return nil
	}
	return &model.Service{From: from, Of: found}
}
