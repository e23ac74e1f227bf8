package graph

import (
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

type proxyResolver struct {
	clusterOf[model.Proxy]
	networkOf[model.Proxy]
}

// Proxies lists the streams of proxies that fit.
func (q query) Proxies(
	ctx context.Context, first *int, after *string, last *int, before *string, filter *model.ProxyFilter, orderBy *model.ProxyOrder,
) (*model.ProxyConnection, error) {
	order := proxyOrder(orderBy)
	window, err := window("proxies"+order.name, first, after, last, before)
	if err != nil {
		return nil, err
	}
	listed := func(behind fleet.Key) iter.Seq[model.Proxy] {
		return func(yield func(model.Proxy) bool) {
			for of := range connected(ctx).ProxiesAfter(behind) {
				if fitting(snapshot(ctx), of, filter) && !yield(model.NewProxy(snapshot(ctx), of)) {
					return
				}
			}
		}
	}
	list := model.List[model.Proxy]{
		Name: "proxies", Key: model.Proxy.Key, Items: listed(fleet.Key{}),
		From: func() iter.Seq[model.Proxy] { return listed(model.ProxyKey(window.After)) },
	}
	list.Count = func() int {
		if filter == nil {
			return connected(ctx).Count()
		}
		count := 0
		for of := range connected(ctx).Proxies() {
			if fitting(snapshot(ctx), of, filter) {
				count++
			}
		}
		return count
	}
	return &model.ProxyConnection{Page: model.NewPage(order.ordered(list), window)}, nil
}

func proxyOrder(by *model.ProxyOrder) order[model.Proxy] {
	if by == nil {
		return order[model.Proxy]{}
	}
	return newOrder(string(by.Field), by.Direction, func(of model.Proxy) string {
		switch by.Field {
		case model.ProxyOrderFieldConnectedAt:
			return number(of.ConnectedAt.UnixNano())
		case model.ProxyOrderFieldSyncState:
			return number(model.Badness(of.SyncState))
		default:
			return of.NodeID
		}
	})
}

// fitting reports whether a stream fits. What the stream itself has is compared first: the network
// of a proxy is looked up in the snapshot.
func fitting(from *federation.Snapshot, of *fleet.Proxy, filter *model.ProxyFilter) bool {
	return filter == nil || fits(filter.ClusterID, string(of.Cluster)) && fits(filter.Namespace, of.Namespace) &&
		(filter.Type == nil || *filter.Type == model.TypeOf(of)) &&
		(filter.SyncState == nil || *filter.SyncState == model.WorstState(of)) &&
		(filter.NodeIDContains == nil || strings.Contains(strings.ToLower(of.NodeID), strings.ToLower(*filter.NodeIDContains))) &&
		(filter.NetworkID == nil || *filter.NetworkID == string(model.PlaceOf(from, of).Network))
}

// Services are those that have an endpoint at an address of the proxy.
func (proxyResolver) Services(
	ctx context.Context, of *model.Proxy, first *int, after *string, last *int, before *string, filter *model.ServiceFilter,
) (model.ServiceConnection, error) {
	name := "services of proxy " + of.Key()
	window, err := window(name, first, after, last, before)
	var all []model.Service
	for _, key := range servicesAt(snapshot(ctx), placeOf(of)) {
		if found, ok := snapshot(ctx).Service(key); ok && fitsService(found, filter) {
			all = append(all, model.Service{From: snapshot(ctx), Of: found})
		}
	}
	list := model.List[model.Service]{Name: name, Key: model.Service.Key, Items: slices.Values(all), Count: func() int { return len(all) }}
	return model.ServiceConnection{Page: model.NewPage(list, window)}, err
}

// servicesAt are the services that have an endpoint at the place, in the order of their keys.
func servicesAt(from *federation.Snapshot, place federation.Place) []federation.ServiceKey {
	var all []federation.ServiceKey
	for _, i := range from.At(place).Instances() {
		all = append(all, i.Service.Key)
	}
	slices.SortFunc(all, federation.ServiceKey.Compare)
	return slices.Compact(all)
}

func placeOf(of *model.Proxy) federation.Place {
	place := federation.Place{Cluster: federation.ClusterID(value(of.ClusterID)), Network: federation.NetworkID(of.NetworkID)}
	for _, text := range of.Addresses {
		if address, err := netip.ParseAddr(text); err == nil {
			place.Addresses = append(place.Addresses, address)
		}
	}
	return place
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
	return transport.BadArgument("nodeID", "%q: proxies in several clusters have this ID; use one of %s",
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
