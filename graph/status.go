package graph

import (
	"context"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

type objectResolver struct{ clusterOf[model.ConfigObject] }

// Status is the status of an object, as far as that is known. Nothing of it is
// computed before a field asks for it.
func (r objectResolver) Status(ctx context.Context, of *model.ConfigObject) (model.ConfigObjectStatus, error) {
	return model.ConfigObjectStatus{
		Delivery:    sync.OnceValue(func() *model.Rollout { return r.deliveryOf(ctx, of.Of.Key) }),
		Ignored:     func() []model.NotHonoured { return r.notHonoured(ctx, of.Of.Key) },
		Drain:       drainStatus(ctx, of.Of.Key),
		AllFindings: func() []model.Finding { return r.findings(ctx, of.Of.Key) },
	}, nil
}

func (r objectResolver) deliveryOf(ctx context.Context, key federation.ObjectKey) *model.Rollout {
	if r.Config.Deliveries == nil {
		return nil
	}
	d, ok := r.Config.Deliveries.Delivery(snapshot(ctx), connected(ctx), key)
	if !ok {
		return nil
	}
	return &model.Rollout{
		Delivered: d.Acked + d.Unanswered + d.Rejected, Acked: d.Acked, Rejected: d.Rejected, Pending: d.Pending,
		All: func() []model.ProxyRollout { return proxyRollouts(d.Proxies()) },
	}
}

func (r objectResolver) notHonoured(ctx context.Context, key federation.ObjectKey) []model.NotHonoured {
	object, ok := snapshot(ctx).Object(key)
	if !ok || r.Config.NotHonoured == nil {
		return nil
	}
	return r.Config.NotHonoured(snapshot(ctx), object)
}

func (r objectResolver) findings(ctx context.Context, key federation.ObjectKey) []model.Finding {
	if r.Config.Findings == nil {
		return nil
	}
	return model.Findings(r.Config.Findings(snapshot(ctx), connected(ctx), key))
}

type refResolver struct{ clusterOf[model.ObjectRef] }

// Current finds the object as it is now.
func (refResolver) Current(ctx context.Context, of *model.ObjectRef) (*model.ConfigObject, error) {
	return objectOf(ctx, federation.ObjectKey{
		Group: of.Group, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, Cluster: federation.ClusterID(value(of.ClusterID)),
	}), nil
}

type statusResolver struct{}

func (statusResolver) Proxies(
	ctx context.Context, of *model.ConfigObjectStatus, first *int, after *string, last *int, before *string,
	filter *model.ProxyRolloutFilter,
) (model.ProxyRolloutConnection, error) {
	window, err := window("proxies of an object", first, after, last, before)
	var all []model.ProxyRollout
	if d := of.Delivery(); d != nil {
		all = d.All()
	}
	return model.ProxyRolloutConnection{Page: model.NewPage(rolloutList(ctx, "proxies of an object", all, filter), window)}, err
}
