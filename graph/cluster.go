package graph

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

type clusterResolver struct{ networkOf[model.Cluster] }

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

func (r *resolver) clusters(from *federation.Snapshot) model.List[model.Cluster] {
	return model.List[model.Cluster]{Name: "clusters", Key: model.Cluster.Key, Items: func(yield func(model.Cluster) bool) {
		for of := range from.Clusters() {
			if !yield(r.cluster(from, of)) {
				return
			}
		}
	}}
}

func (clusterResolver) Services(
	_ context.Context, cluster *model.Cluster, first *int, after *string, last *int, before *string, filter *model.ServiceFilter,
) (model.ServiceConnection, error) {
	name := "services of cluster " + cluster.ClusterID()
	window, err := window(name, first, after, last, before)
	list := model.List[model.Service]{Name: name, Key: model.Service.Key, Items: func(yield func(model.Service) bool) {
		for _, of := range servicesOf(cluster) {
			if fitsService(of, filter) && !yield(model.Service{From: cluster.From, Of: of}) {
				return
			}
		}
	}}
	if filter == nil {
		list.Count = func() int { return cluster.Of.Services }
	}
	return model.ServiceConnection{Page: model.NewPage(list, window)}, err
}

// servicesOf returns the services to which the cluster contributes, each once,
// in the order of their keys.
func servicesOf(cluster *model.Cluster) []*federation.Service {
	all := slices.Collect(cluster.From.Services().Of(cluster.Of.ID))
	byKey := func(a, b *federation.Service) int { return a.Key.Compare(b.Key) }
	if !slices.IsSortedFunc(all, byKey) {
		slices.SortFunc(all, byKey)
	}
	return slices.Compact(all)
}

func (clusterResolver) Endpoints(
	_ context.Context, cluster *model.Cluster, first *int, after *string, last *int, before *string, filter *model.EndpointFilter,
) (model.EndpointConnection, error) {
	name := "endpoints of cluster " + cluster.ClusterID()
	window, err := window(name, first, after, last, before)
	list := model.List[model.Endpoint]{
		Name: name, Key: model.Endpoint.WideKey, Items: endpointsOf(cluster, federation.ServiceKey{}, filter),
		From: func() iter.Seq[model.Endpoint] {
			return endpointsOf(cluster, model.ServiceKey(window.After), filter)
		},
	}
	if filter == nil {
		list.Count = func() int { return cluster.Of.Endpoints }
	}
	return model.EndpointConnection{Page: model.NewPage(list, window)}, err
}

// endpointsOf yields the cluster's endpoints of the services from the key on.
func endpointsOf(cluster *model.Cluster, from federation.ServiceKey, filter *model.EndpointFilter) iter.Seq[model.Endpoint] {
	return func(yield func(model.Endpoint) bool) {
		for _, of := range servicesOf(cluster) {
			if of.Key.Compare(from) < 0 {
				continue
			}
			for endpoint := range (model.Service{From: cluster.From, Of: of}).Endpoints {
				if endpoint.Source.Cluster == cluster.Of.ID && fitsEndpoint(endpoint, filter) && !yield(endpoint) {
					return
				}
			}
		}
	}
}

func (clusterResolver) Problems(
	_ context.Context, cluster *model.Cluster, first *int, after *string, last *int, before *string,
) (model.ProblemConnection, error) {
	name := "problems of cluster " + cluster.ClusterID()
	window, err := window(name, first, after, last, before)
	var all []model.Problem
	for problem := range cluster.From.Problems(cluster.Of.ID) {
		all = append(all, shownProblem(problem))
	}
	slices.SortStableFunc(all, func(a, b model.Problem) int { return strings.Compare(problemKey(a), problemKey(b)) })
	all = slices.CompactFunc(all, func(a, b model.Problem) bool { return problemKey(a) == problemKey(b) })
	list := model.List[model.Problem]{Name: name, Items: slices.Values(all), Key: problemKey, Count: func() int { return len(all) }}
	return model.ProblemConnection{Page: model.NewPage(list, window)}, err
}

func shownProblem(p federation.Problem) model.Problem {
	shown := model.Problem{Code: p.Code, Object: p.Object, Message: p.Message}
	if p.Field != "" {
		shown.Field = &p.Field
	}
	return shown
}

func problemKey(p model.Problem) string {
	field := ""
	if p.Field != nil {
		field = *p.Field
	}
	return fmt.Sprintf("%s\x00%s\x00%s\x00%s", p.Object, field, p.Code, p.Message)
}
