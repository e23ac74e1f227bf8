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
	var by order[*fleet.Proxy]
	if orderBy != nil {
		by = newOrder(orderBy.Field, orderBy.Direction, proxyOrders)
	}
	of := connected(ctx)
	page, err := proxyPage(ctx, model.List[*fleet.Proxy]{
		Name: "proxies", Key: model.KeyOf, Items: of.Proxies(), Count: of.Count,
		From: func(after string) iter.Seq[*fleet.Proxy] { return of.ProxiesAfter(model.ProxyKey(after)) },
		Back: func(before string) iter.Seq[*fleet.Proxy] { return of.ProxiesBefore(model.ProxyKey(before)) },
	}, by, first, after, last, before, filter)
	if err != nil {
		return nil, err
	}
	return &model.ProxyConnection{Page: page}, nil
}

// proxyOrders are what proxies can be sorted by.
var proxyOrders = map[model.ProxyOrderField]func(*fleet.Proxy) string{
	model.ProxyOrderFieldNodeID:      func(of *fleet.Proxy) string { return of.NodeID },
	model.ProxyOrderFieldConnectedAt: func(of *fleet.Proxy) string { return number(of.ConnectedAt.UnixNano()) },
	model.ProxyOrderFieldSyncState:   func(of *fleet.Proxy) string { return number(model.Badness(model.WorstState(of))) },
}

// proxyPage is a page of the streams of the list that fit. Only those of the page are made into
// what clients see.
func proxyPage(
	ctx context.Context, list model.List[*fleet.Proxy], by order[*fleet.Proxy],
	first *int, after *string, last *int, before *string, filter *model.ProxyFilter,
) (page model.Page[model.Proxy], err error) {
	window, err := window(list.Name+by.name, first, after, last, before)
	if err != nil {
		return page, err
	}
	if filter != nil {
		list, err = seen(ctx).members.filteredBy(ctx, list, filter)
	}
	return model.Shown(by.page(list, window), func(of *fleet.Proxy) model.Proxy { return model.NewProxy(snapshot(ctx), of) }), err
}

// Services are those that have an endpoint at an address of the proxy.
func (proxyResolver) Services(
	ctx context.Context, of *model.Proxy, first *int, after *string, last *int, before *string, filter *model.ServiceFilter,
) (model.ServiceConnection, error) {
	name := "services of proxy " + of.Key()
	window, err := window(name, first, after, last, before)
	services := model.ListMade(name, func() (all []*federation.Service) {
		for _, key := range servicesAt(snapshot(ctx), placeOf(of)) {
			if found, ok := snapshot(ctx).Service(key); ok {
				all = append(all, found)
			}
		}
		return all
	}, serviceKey)
	return model.ServiceConnection{Page: model.NewPage(serviceList(ctx, snapshot(ctx), services, filter), window)}, err
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
