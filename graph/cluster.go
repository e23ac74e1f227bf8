package graph

import (
	"context"
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

type clusterResolver struct {
	*resolver
	networkOf[model.Cluster]
}

// ConfigObject is the Cluster object of that ID, or nil.
func (clusterResolver) ConfigObject(ctx context.Context, of *model.Cluster) (*model.ConfigObject, error) {
	return objectOf(ctx, meshKey(federation.ClusterKind, string(of.Of.ID))), nil
}

func (r *resolver) cluster(from *federation.Snapshot, of *federation.Cluster) model.Cluster {
	found := model.Cluster{From: from, Of: of, Now: r.Now()}
	if r.Counters != nil {
		found.LastEvent, found.LastSync = r.Counters.Counters(of.ID)
		if used, limits, read := r.Counters.Usage(of.ID); read {
			found.Usage = &model.ClusterUsage{
				Objects: used.Objects, ObjectsLimit: limits.Objects, Bytes: float64(used.Bytes), BytesLimit: float64(limits.Bytes),
				PagesLimit: limits.Pages,
			}
		}
	}
	return found
}

func clusterKey(of *federation.Cluster) string { return string(of.ID) }

func clusterList(name string, all iter.Seq[*federation.Cluster]) model.List[*federation.Cluster] {
	return model.List[*federation.Cluster]{Name: name, Key: clusterKey, Items: all}
}

func clusterPage(ctx context.Context, r *resolver, page model.Page[*federation.Cluster]) model.Page[model.Cluster] {
	return model.Shown(page, func(of *federation.Cluster) model.Cluster { return r.cluster(snapshot(ctx), of) })
}

func (clusterResolver) Services(
	ctx context.Context, cluster *model.Cluster, first *int, after *string, last *int, before *string, filter *model.ServiceFilter,
) (model.ServiceConnection, error) {
	name := "services of cluster " + cluster.ClusterID()
	window, err := window(name, first, after, last, before)
	list := serviceList(ctx, cluster.From, servicesOf(name, cluster), filter)
	if filter == nil {
		list.Count = func() int { return cluster.Of.Services }
	}
	return model.ServiceConnection{Page: model.NewPage(list, window)}, err
}

// servicesOf lists the services to which the cluster contributes, each once, in the order of their keys.
func servicesOf(name string, cluster *model.Cluster) model.List[*federation.Service] {
	return model.ListMade(name, func() []*federation.Service {
		all := slices.Collect(cluster.From.Services().Of(cluster.Of.ID))
		byKey := func(a, b *federation.Service) int { return a.Key.Compare(b.Key) }
		if !slices.IsSortedFunc(all, byKey) {
			slices.SortFunc(all, byKey)
		}
		return slices.Compact(all)
	}, serviceKey)
}

func (clusterResolver) Endpoints(
	ctx context.Context, cluster *model.Cluster, first *int, after *string, last *int, before *string, filter *model.EndpointFilter,
) (model.EndpointConnection, error) {
	name := "endpoints of cluster " + cluster.ClusterID()
	window, wanted, err := endpointArguments(name, first, after, last, before, filter)
	if err != nil {
		return model.EndpointConnection{}, err
	}
	list := endpointList(ctx, servicesOf(name, cluster), func(endpoint model.Endpoint) bool {
		return endpoint.Source.Cluster == cluster.Of.ID && wanted.fits(endpoint)
	})
	if filter == nil {
		list.Count = func() int { return cluster.Of.Endpoints }
	}
	return model.EndpointConnection{Page: model.NewPage(list, window)}, nil
}

func (r clusterResolver) Problems(
	_ context.Context, cluster *model.Cluster, first *int, after *string, last *int, before *string,
) (model.ProblemConnection, error) {
	name := "problems of cluster " + cluster.ClusterID()
	window, err := window(name, first, after, last, before)
	var all []model.Problem
	for problem := range cluster.From.Problems(cluster.Of.ID) {
		all = append(all, shownProblem(r.resolver, problem, cluster.Of.ID))
	}
	slices.SortStableFunc(all, func(a, b model.Problem) int { return strings.Compare(a.Key(), b.Key()) })
	all = slices.CompactFunc(all, func(a, b model.Problem) bool { return a.Key() == b.Key() })
	return model.ProblemConnection{Page: model.NewPage(model.ListOf(name, all, model.Problem.Key), window)}, err
}
