package graph

import (
	"context"
	"iter"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// Proxies lists the streams of all proxies.
func (q query) Proxies(ctx context.Context, first *int, after *string, last *int, before *string) (*model.ProxyConnection, error) {
	window, err := window("proxies", first, after, last, before)
	if err != nil {
		return nil, err
	}
	listed := func(behind fleet.Key) iter.Seq[model.Proxy] {
		return func(yield func(model.Proxy) bool) {
			for of := range connected(ctx).ProxiesAfter(behind) {
				if !yield(model.NewProxy(snapshot(ctx), of)) {
					return
				}
			}
		}
	}
	list := model.List[model.Proxy]{
		Name: "proxies", Key: model.Proxy.Key, Items: listed(fleet.Key{}), Count: func() int { return connected(ctx).Count() },
		From: func() iter.Seq[model.Proxy] { return listed(model.ProxyKey(window.After)) },
	}
	return &model.ProxyConnection{Page: model.NewPage(list, window)}, nil
}

// Proxy finds the latest stream of a node.
func (q query) Proxy(ctx context.Context, nodeID string) (*model.Proxy, error) {
	streams := connected(ctx).ByID(nodeID)
	if len(streams) == 0 {
		return nil, nil
	}
	latest := model.NewProxy(snapshot(ctx), streams[len(streams)-1])
	return &latest, nil
}

// stream finds one stream by its key.
func stream(ctx context.Context, key fleet.Key) (found model.Proxy, ok bool) {
	for _, of := range connected(ctx).ByID(key.NodeID) {
		if of.StreamID == key.StreamID {
			return model.NewProxy(snapshot(ctx), of), true
		}
	}
	return model.Proxy{}, false
}
