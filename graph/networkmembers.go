package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// networkMembers are the services and endpoints that have an address in a network.
type networkMembers struct {
	services  []*federation.Service // in the order of their keys
	endpoints int
}

// networksOf groups the services of a snapshot by the networks of their endpoints: once in an operation,
// when a field first asks, however many networks then ask.
func networksOf(from *federation.Snapshot) map[federation.NetworkID]*networkMembers {
	all := map[federation.NetworkID]*networkMembers{}
	for of := range from.Services().All() {
		for _, group := range of.Endpoints {
			for i := range group.Endpoints {
				id := group.Endpoints[i].Network
				if all[id] == nil {
					all[id] = &networkMembers{}
				}
				in := all[id]
				in.endpoints++
				if last := len(in.services) - 1; last < 0 || in.services[last] != of {
					in.services = append(in.services, of)
				}
			}
		}
	}
	return all
}

// servicesIn lists the services with an endpoint in the network.
func servicesIn(ctx context.Context, name string, id federation.NetworkID) model.List[*federation.Service] {
	return model.ListMade(name, func() []*federation.Service {
		if in := seen(ctx).networks()[id]; in != nil {
			return in.services
		}
		return nil
	}, serviceKey)
}

// Services are those with an endpoint in the network.
func (networkResolver) Services(
	ctx context.Context, of *model.Network, first *int, after *string, last *int, before *string, filter *model.ServiceFilter,
) (model.ServiceConnection, error) {
	name := "services of network " + of.NetworkID()
	window, err := window(name, first, after, last, before)
	list := serviceList(ctx, snapshot(ctx), servicesIn(ctx, name, of.Of.ID), filter)
	return model.ServiceConnection{Page: model.NewPage(list, window)}, err
}

// Endpoints are those in the network.
func (networkResolver) Endpoints(
	ctx context.Context, of *model.Network, first *int, after *string, last *int, before *string, filter *model.EndpointFilter,
) (model.EndpointConnection, error) {
	name := "endpoints of network " + of.NetworkID()
	window, wanted, err := endpointArguments(name, first, after, last, before, filter)
	if err != nil {
		return model.EndpointConnection{}, err
	}
	list := endpointList(ctx, servicesIn(ctx, name, of.Of.ID), func(endpoint model.Endpoint) bool {
		return endpoint.Of.Network == of.Of.ID && wanted.fits(endpoint)
	})
	if filter == nil {
		list.Count = func() int {
			if in := seen(ctx).networks()[of.Of.ID]; in != nil {
				return in.endpoints
			}
			return 0
		}
	}
	return model.EndpointConnection{Page: model.NewPage(list, window)}, nil
}
