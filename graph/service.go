package graph

import (
	"context"
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

type serviceResolver struct{ *resolver }

// allServices are those of the snapshot.
func allServices(name string, from *federation.Snapshot) model.List[*federation.Service] {
	return model.List[*federation.Service]{
		Name: name, Key: serviceKey, Items: from.Services().All(), Count: from.Services().Len,
		From: func(after string) iter.Seq[*federation.Service] { return from.Services().From(model.ServiceKey(after)) },
		Back: func(before string) iter.Seq[*federation.Service] {
			return from.Services().UpTo(model.ServiceKey(before))
		},
	}
}

func serviceKey(of *federation.Service) string { return model.KeyOfService(of.Key) }

// services lists the services of the snapshot that fit.
func services(ctx context.Context, from *federation.Snapshot, filter *model.ServiceFilter) model.List[model.Service] {
	return serviceList(ctx, from, allServices("services", from), filter)
}

// serviceList shows the services of the list that fit.
func serviceList(
	ctx context.Context, from *federation.Snapshot, all model.List[*federation.Service], filter *model.ServiceFilter,
) model.List[model.Service] {
	named := hostnamesIn(filter)
	shown := func(some iter.Seq[*federation.Service]) iter.Seq[model.Service] {
		return func(yield func(model.Service) bool) {
			for of := range inTime(ctx, some) {
				if fitsService(of, filter, named) && !yield(model.Service{From: from, Of: of}) {
					return
				}
			}
		}
	}
	list := model.List[model.Service]{
		Name: all.Name, Key: model.Service.Key, Items: shown(all.Items),
		From: func(after string) iter.Seq[model.Service] { return shown(all.From(after)) },
		Back: func(before string) iter.Seq[model.Service] { return shown(all.Back(before)) },
	}
	if filter == nil {
		list.Count = all.Count
	}
	return list
}

func (serviceResolver) Endpoints(
	ctx context.Context, service *model.Service, first *int, after *string, last *int, before *string, filter *model.EndpointFilter,
) (model.EndpointConnection, error) {
	name := "endpoints of service " + service.Of.Key.String()
	window, wanted, err := endpointArguments(name, first, after, last, before, filter)
	if err != nil {
		return model.EndpointConnection{}, err
	}
	list := model.List[model.Endpoint]{Name: name, Key: model.Endpoint.Key, Items: func(yield func(model.Endpoint) bool) {
		for endpoint := range inTime(ctx, service.Endpoints) {
			if wanted.fits(endpoint) && !yield(endpoint) {
				return
			}
		}
	}}
	if filter == nil {
		list.Count = service.Of.CountEndpoints
	}
	return model.EndpointConnection{Page: model.NewPage(list, window)}, nil
}

// hostnamesIn are the hostnames of a filter as snapshots have them, made once for all services; nil: it has none.
func hostnamesIn(filter *model.ServiceFilter) map[federation.Hostname]bool {
	if filter == nil || filter.Hostnames == nil {
		return nil
	}
	named := make(map[federation.Hostname]bool, len(filter.Hostnames))
	for _, name := range filter.Hostnames {
		named[lookedUp(name)] = true
	}
	return named
}

func fitsService(of *federation.Service, filter *model.ServiceFilter, named map[federation.Hostname]bool) bool {
	if filter == nil {
		return true
	}
	contributes := func(shard federation.ShardKey) bool {
		return fits(filter.ClusterID, string(shard.Cluster)) &&
			(filter.Provider == nil || strings.EqualFold(string(*filter.Provider), string(shard.Provider)))
	}
	return fits(filter.Namespace, of.Key.Namespace) &&
		(filter.HostnameContains == nil || strings.Contains(string(of.Key.Hostname), strings.ToLower(*filter.HostnameContains))) &&
		(named == nil || named[of.Key.Hostname]) &&
		(filter.HasEndpoints == nil || *filter.HasEndpoints == (of.CountEndpoints() > 0)) &&
		(filter.HasConflicts == nil || *filter.HasConflicts == (len(of.Conflicts) > 0)) &&
		(filter.ClusterID == nil && filter.Provider == nil || slices.ContainsFunc(of.Order(), contributes)) &&
		(filter.NetworkID == nil || inNetwork(of, federation.NetworkID(*filter.NetworkID)))
}

func inNetwork(of *federation.Service, network federation.NetworkID) bool {
	for _, group := range of.Endpoints {
		if slices.ContainsFunc(group.Endpoints, func(e federation.Endpoint) bool { return e.Network == network }) {
			return true
		}
	}
	return false
}

func fits(wanted *string, has string) bool { return wanted == nil || *wanted == has }

// ConfigObjects are those that name the hostname, and the Gateways to which these are bound.
func (r serviceResolver) ConfigObjects(
	ctx context.Context, of *model.Service, first *int, after *string, last *int, before *string,
) (model.ConfigObjectConnection, error) {
	name := "objects of service " + of.Of.Key.String()
	window, err := window(name, first, after, last, before)
	list := model.ListMade(name, func() (all []model.ConfigObject) {
		for _, o := range objectsAbout(of.From, r.Config.Kinds, of.Of.Key.Hostname, nil) {
			if found, ok := objectNamed(ctx, o.Key); ok {
				all = append(all, found)
			}
		}
		slices.SortFunc(all, func(a, b model.ConfigObject) int { return strings.Compare(a.Key(), b.Key()) })
		return all
	}, model.ConfigObject.Key)
	list.Size, list.MaxPage = manifestSize, maxManifestPage
	return model.ConfigObjectConnection{Page: recorded(r.resolver, model.NewPage(list, window))}, err
}
