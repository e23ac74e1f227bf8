package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

type objectResolver struct{ *resolver }

// Status says what became of an object, as far as that is known.
func (r objectResolver) Status(ctx context.Context, of *model.ConfigObject) (model.ConfigObjectStatus, error) {
	var status model.ConfigObjectStatus
	if r.Config.Deliveries != nil {
		if d, ok := r.Config.Deliveries.Delivery(connected(ctx), of.Of.Key); ok {
			status.Delivery = &model.Rollout{
				Delivered: d.Acked + d.Unanswered + d.Rejected, Acked: d.Acked, Rejected: d.Rejected, Pending: d.Pending,
				All: func() []model.ProxyRollout { return proxyRollouts(d.Proxies()) },
			}
		}
	}
	if object, ok := snapshot(ctx).Object(of.Of.Key); ok && r.Config.NotHonoured != nil {
		status.NotHonoured = r.Config.NotHonoured(snapshot(ctx), object)
	}
	if r.Config.Findings != nil {
		status.Findings = model.Findings(r.Config.Findings(snapshot(ctx), connected(ctx), of.Of.Key))
	}
	return status, nil
}

type refResolver struct{ *resolver }

// Current finds the object as it is now.
func (r refResolver) Current(ctx context.Context, of *model.ObjectRef) (*model.ConfigObject, error) {
	found, ok := query(r).objectNamed(ctx, federation.ObjectKey{Group: of.Group, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
	if !ok {
		return nil, nil
	}
	return &found, nil
}

type statusResolver struct{}

func (statusResolver) Proxies(_ context.Context, of *model.ConfigObjectStatus, first *int, after *string, last *int, before *string) (model.ProxyRolloutConnection, error) {
	window, err := window("proxies of an object", first, after, last, before)
	var all []model.ProxyRollout
	if of.Delivery != nil {
		all = of.Delivery.All()
	}
	return model.ProxyRolloutConnection{Page: model.NewPage(rolloutList("proxies of an object", all), window)}, err
}
