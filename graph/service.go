package graph

import (
	"context"
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

type serviceResolver struct{}

// services lists the services that fit; a page begins behind the key after.
func services(from *federation.Snapshot, after string, filter *model.ServiceFilter) model.List[model.Service] {
	listed := func(behind federation.ServiceKey) iter.Seq[model.Service] {
		return func(yield func(model.Service) bool) {
			for of := range from.Services().After(behind) {
				if fitsService(of, filter) && !yield(model.Service{From: from, Of: of}) {
					return
				}
			}
		}
	}
	list := model.List[model.Service]{
		Name: "services", Key: model.Service.Key, Items: listed(federation.ServiceKey{}),
		From: func() iter.Seq[model.Service] { return listed(model.ServiceKey(after)) },
	}
	if filter == nil {
		list.Count = from.Services().Len
	}
	return list
}

func (serviceResolver) Endpoints(
	_ context.Context, service *model.Service, first *int, after *string, last *int, before *string, filter *model.EndpointFilter,
) (model.EndpointConnection, error) {
	name := "endpoints of service " + service.Of.Key.String()
	window, err := window(name, first, after, last, before)
	list := model.List[model.Endpoint]{Name: name, Key: model.Endpoint.Key, Items: func(yield func(model.Endpoint) bool) {
		for endpoint := range service.Endpoints {
			if fitsEndpoint(endpoint, filter) && !yield(endpoint) {
				return
			}
		}
	}}
	if filter == nil {
		list.Count = service.Of.CountEndpoints
	}
	return model.EndpointConnection{Page: model.NewPage(list, window)}, err
}

func fitsService(of *federation.Service, filter *model.ServiceFilter) bool {
	if filter == nil {
		return true
	}
	contributes := func(shard federation.ShardKey) bool {
		return fits(filter.ClusterID, string(shard.Cluster)) &&
			(filter.Provider == nil || strings.EqualFold(string(*filter.Provider), string(shard.Provider)))
	}
	return fits(filter.Namespace, of.Key.Namespace) &&
		(filter.HostnameContains == nil || strings.Contains(string(of.Key.Hostname), strings.ToLower(*filter.HostnameContains))) &&
		(filter.Hostnames == nil || slices.ContainsFunc(filter.Hostnames, func(name string) bool { return lookedUp(name) == of.Key.Hostname })) &&
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

func fitsEndpoint(endpoint model.Endpoint, filter *model.EndpointFilter) bool {
	if filter == nil {
		return true
	}
	return fits(filter.ClusterID, string(endpoint.Source.Cluster)) && fits(filter.NetworkID, string(endpoint.Of.Network)) &&
		(filter.Health == nil || string(*filter.Health) == string(endpoint.Of.Health)) &&
		fitsLocality(endpoint.Of.Locality, filter.Locality) &&
		!slices.ContainsFunc(filter.Labels, func(wanted model.LabelInput) bool {
			value, has := endpoint.Of.Labels[wanted.Key]
			return !has || value != wanted.Value
		})
}

func fitsLocality(of federation.Locality, wanted *model.LocalityInput) bool {
	return wanted == nil || fits(wanted.Region, of.Region) && fits(wanted.Zone, of.Zone) && fits(wanted.SubZone, of.SubZone)
}

func fits(wanted *string, has string) bool { return wanted == nil || *wanted == has }
