package graph

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
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

// Proxy finds the latest stream of a node, which the ID of its cluster may precede.
func (q query) Proxy(ctx context.Context, nodeID string) (*model.Proxy, error) {
	streams := connected(ctx).ByID(nodeID)
	if cluster, id, given := strings.Cut(nodeID, "/"); given && len(streams) == 0 {
		streams = slices.DeleteFunc(connected(ctx).ByID(id), func(of *fleet.Proxy) bool { return string(of.Cluster) != cluster })
	}
	if len(streams) == 0 {
		return nil, nil
	}
	if err := oneCluster(nodeID, streams); err != nil {
		return nil, err
	}
	latest := model.NewProxy(snapshot(ctx), streams[len(streams)-1])
	return &latest, nil
}

// oneCluster refuses a node ID that proxies of several clusters have.
func oneCluster(nodeID string, streams []*fleet.Proxy) error {
	names := map[string]bool{}
	for _, of := range streams {
		names[string(of.Cluster)+"/"+of.NodeID] = true
	}
	if len(names) == 1 {
		return nil
	}
	return transport.Errorf(transport.BadUserInput, "nodeID %q: proxies in several clusters have this ID; use one of %s",
		nodeID, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
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
