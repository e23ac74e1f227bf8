package graph

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// members are the streams of proxies by the cluster, the network and the service to which they
// belong: made once of the snapshot and the fleet of an operation, when a field first asks,
// however many items then ask. Each list is in the order of the fleet.
type members struct {
	byCluster func() map[federation.ClusterID][]*fleet.Proxy
	byNetwork func() map[federation.NetworkID][]*fleet.Proxy
	byService func() map[federation.ServiceKey][]*fleet.Proxy
	// byEndpoint is by the services, sources, networks and addresses of endpoints.
	byEndpoint func() map[endpointPlace][]*fleet.Proxy
	networks   func() map[*fleet.Proxy]federation.NetworkID // of all proxies: a look at the workload of each
	filtered   sync.Map                                     // of func() []*fleet.Proxy, by the name of the list and the filter
}

func membersOf(from func() *federation.Snapshot, proxies func() *fleet.Value) *members {
	networks := sync.OnceValue(func() map[*fleet.Proxy]federation.NetworkID {
		all := map[*fleet.Proxy]federation.NetworkID{}
		for of := range proxies().Proxies() {
			all[of] = model.PlaceOf(from(), of).Network
		}
		return all
	})
	return &members{
		networks:  networks,
		byCluster: grouped(proxies, func(of *fleet.Proxy) []federation.ClusterID { return []federation.ClusterID{of.Cluster} }),
		byNetwork: grouped(proxies, func(of *fleet.Proxy) []federation.NetworkID {
			return []federation.NetworkID{networks()[of]}
		}),
		byService: grouped(proxies, func(of *fleet.Proxy) []federation.ServiceKey {
			return servicesAt(from(), model.PlaceOf(from(), of))
		}),
		byEndpoint: grouped(proxies, func(of *fleet.Proxy) (all []endpointPlace) {
			for _, i := range from().At(model.PlaceOf(from(), of)).Instances() {
				at := endpointPlace{i.Service.Key, i.Shard, i.Endpoint.Network, i.Endpoint.Address}
				if !slices.Contains(all, at) {
					all = append(all, at)
				}
			}
			return all
		}),
	}
}

// endpointPlace is where an endpoint of a service is.
type endpointPlace struct {
	service federation.ServiceKey
	source  federation.ShardKey
	network federation.NetworkID
	address federation.Address
}

func grouped[K comparable](proxies func() *fleet.Value, by func(*fleet.Proxy) []K) func() map[K][]*fleet.Proxy {
	return sync.OnceValue(func() map[K][]*fleet.Proxy {
		all := map[K][]*fleet.Proxy{}
		for of := range proxies().Proxies() {
			for _, key := range by(of) {
				all[key] = append(all[key], of)
			}
		}
		return all
	})
}

// filteredBy returns the proxies of a list that fit, in their order. A list is filtered once per
// operation and filter, however many items and aliases lead to it.
func (m *members) filteredBy(
	ctx context.Context, list model.List[*fleet.Proxy], filter *model.ProxyFilter,
) (model.List[*fleet.Proxy], error) {
	text, err := json.Marshal(filter)
	if err != nil {
		return list, err
	}
	once, _ := m.filtered.LoadOrStore(list.Name+"\x00"+string(text), sync.OnceValue(func() []*fleet.Proxy {
		return slices.Collect(fitting(inTime(ctx, list.Items), func(of *fleet.Proxy) bool { return m.fits(of, filter) }))
	}))
	return model.ListMade(list.Name, once.(func() []*fleet.Proxy), list.Key), nil
}

// fits reports whether a stream fits. What the stream itself has is compared first.
func (m *members) fits(of *fleet.Proxy, filter *model.ProxyFilter) bool {
	return filter == nil || fits(filter.ClusterID, string(of.Cluster)) && fits(filter.Namespace, of.Namespace) &&
		(filter.Type == nil || *filter.Type == model.TypeOf(of)) &&
		(filter.SyncState == nil || *filter.SyncState == model.WorstState(of)) &&
		(filter.NodeIDContains == nil || strings.Contains(strings.ToLower(of.NodeID), strings.ToLower(*filter.NodeIDContains))) &&
		(filter.NetworkID == nil || *filter.NetworkID == string(m.networks()[of]))
}

// proxiesOf is a page of the streams of a group that fit.
func proxiesOf(
	ctx context.Context, name string, all []*fleet.Proxy, first *int, after *string, last *int, before *string, filter *model.ProxyFilter,
) (model.ProxyConnection, error) {
	page, err := proxyPage(ctx, model.ListOf(name, all, model.KeyOf), order[*fleet.Proxy]{}, first, after, last, before, filter)
	return model.ProxyConnection{Page: page}, err
}

// Proxies are those of the cluster.
func (clusterResolver) Proxies(
	ctx context.Context, of *model.Cluster, first *int, after *string, last *int, before *string, filter *model.ProxyFilter,
) (model.ProxyConnection, error) {
	all := seen(ctx).members.byCluster()[of.Of.ID]
	return proxiesOf(ctx, "proxies of cluster "+of.ClusterID(), all, first, after, last, before, filter)
}

// Proxies are those in the network.
func (networkResolver) Proxies(
	ctx context.Context, of *model.Network, first *int, after *string, last *int, before *string, filter *model.ProxyFilter,
) (model.ProxyConnection, error) {
	all := seen(ctx).members.byNetwork()[of.Of.ID]
	return proxiesOf(ctx, "proxies of network "+of.NetworkID(), all, first, after, last, before, filter)
}

// Proxies are those that have an endpoint of the service at one of their addresses.
func (serviceResolver) Proxies(
	ctx context.Context, of *model.Service, first *int, after *string, last *int, before *string, filter *model.ProxyFilter,
) (model.ProxyConnection, error) {
	all := seen(ctx).members.byService()[of.Of.Key]
	return proxiesOf(ctx, "proxies of service "+of.Of.Key.String(), all, first, after, last, before, filter)
}

// Proxies are those at the address of the endpoint.
func (endpointResolver) Proxies(
	ctx context.Context, of *model.Endpoint, first *int, after *string, last *int, before *string, filter *model.ProxyFilter,
) (model.ProxyConnection, error) {
	at := endpointPlace{of.ServiceKey(), of.Source, of.Of.Network, of.Of.Address}
	return proxiesOf(ctx, "proxies of endpoint "+of.ID(), seen(ctx).members.byEndpoint()[at], first, after, last, before, filter)
}
