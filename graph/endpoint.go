package graph

import (
	"context"
	"iter"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

// Endpoints lists the endpoints of all services that fit.
func (q query) Endpoints(
	ctx context.Context, first *int, after *string, last *int, before *string, filter *model.EndpointFilter,
) (*model.EndpointConnection, error) {
	window, wanted, err := endpointArguments("endpoints", first, after, last, before, filter)
	if err != nil {
		return nil, err
	}
	list := endpointList(ctx, allServices("endpoints", snapshot(ctx)), wanted.fits)
	if filter == nil {
		list.Count = func() int { return q.overviews.numbers(snapshot(ctx)).Endpoints.Total }
	}
	return &model.EndpointConnection{Page: model.NewPage(list, window)}, nil
}

// endpointList has the endpoints of services that are kept, by service. The key of an endpoint begins with that of its
// service, at which the walk through the services begins.
func endpointList(
	ctx context.Context, services model.List[*federation.Service], keep func(model.Endpoint) bool,
) model.List[model.Endpoint] {
	forward := func(all iter.Seq[*federation.Service]) iter.Seq[model.Endpoint] {
		return func(yield func(model.Endpoint) bool) {
			for of := range inTime(ctx, all) {
				for endpoint := range inTime(ctx, (model.Service{Of: of}).Endpoints) {
					if keep(endpoint) && !yield(endpoint) {
						return
					}
				}
			}
		}
	}
	return model.List[model.Endpoint]{
		Name: services.Name, Key: model.Endpoint.WideKey, Items: forward(services.Items),
		From: func(after string) iter.Seq[model.Endpoint] {
			return forward(services.From(model.KeyOfService(model.ServiceKey(after))))
		},
		Back: func(before string) iter.Seq[model.Endpoint] {
			if before != "" {
				before = model.KeyOfService(model.ServiceKey(before)) + "\x00" // its service is one of them
			}
			return func(yield func(model.Endpoint) bool) {
				for of := range inTime(ctx, services.Back(before)) {
					for _, endpoint := range slices.Backward(slices.Collect((model.Service{Of: of}).Endpoints)) {
						if keep(endpoint) && !yield(endpoint) {
							return
						}
					}
				}
			}
		},
	}
}
