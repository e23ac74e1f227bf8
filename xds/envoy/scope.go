package envoy

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/destinationrule"
	"isthmus.dev/isthmus/xds/envoy/dns"
	"isthmus.dev/isthmus/xds/envoy/edge"
	"isthmus.dev/isthmus/xds/envoy/endpoint"
	"isthmus.dev/isthmus/xds/envoy/envoyfilter"
	"isthmus.dev/isthmus/xds/envoy/facet"
	"isthmus.dev/isthmus/xds/envoy/headless"
	"isthmus.dev/isthmus/xds/envoy/inbound"
	"isthmus.dev/isthmus/xds/envoy/node"
	"isthmus.dev/isthmus/xds/envoy/outbound"
	"isthmus.dev/isthmus/xds/envoy/proxyless"
	"isthmus.dev/isthmus/xds/envoy/resource"
	"isthmus.dev/isthmus/xds/envoy/route"
	"isthmus.dev/isthmus/xds/envoy/service"
	"isthmus.dev/isthmus/xds/envoy/snidnat"
	"isthmus.dev/isthmus/xds/envoy/telemetry"
)

// scope has what is in a scope. Its other half, which builders read, is its row in the room node:
// its name, its traits, and the facets that a node has of it.
type scope struct {
	proxies, clients content // of proxies, and of gRPC clients that have none
}

// content is the resources of a scope.
type content struct {
	// fixed are the names that exist whatever the services; nil: none.
	fixed func(resource.Type, node.Facet, *federation.Reader) []string
	// names are those that a service contributes; nil: none.
	names namer
	// build makes resources. It returns an untyped nil where the name does not exist.
	build map[resource.Type]build
	// plan plans the routes, if they consist of virtual hosts that are built one by one; nil: they are built whole.
	plan route.Planner
}

// namer lists the names that a service contributes, in any order (Contributes).
type namer func(resource.Type, node.Facet, *federation.Service, *federation.Reader) []string

type build func(v *facet.View, name string) proto.Message

// made is the resource of that name for the view, with the patches of EnvoyFilters: they come
// after everything else.
func (of build) made(v *facet.View, name string) proto.Message {
	m := of(v, name)
	if c, is := m.(*clusterv3.Cluster); is && c != nil && v.Facet.Delimited {
		c.AltStatName = resource.Delimited(name)
	}
	return envoyfilter.Apply(v, m)
}

// contentOf is what is in the facet's scope.
func contentOf(f node.Facet) content {
	if f.GRPC {
		return scopes[f.Scope].clients
	}
	return scopes[f.Scope].proxies
}

// offering are the scopes whose resources are made of services.
var offering = scope{
	proxies: content{
		names: withSubsets(perPort(outbound.AppendNames)),
		build: map[resource.Type]build{
			resource.ClusterType: cluster.Build, resource.EndpointType: endpoint.Assignment, resource.ListenerType: listeners(outbound.Listener),
		},
	},
	clients: content{
		names: withSubsets(perPort(proxyless.AppendNames)),
		build: map[resource.Type]build{resource.ClusterType: proxyless.Cluster, resource.EndpointType: proxyless.Assignment},
	},
}

// scopes has a row for each scope, in their order.
var scopes = map[node.Scope]scope{
	node.ScopeStatic: {
		proxies: content{
			fixed: always(resource.ClusterType, resource.BlackHoleCluster, resource.InboundPassthroughCluster, resource.PassthroughCluster),
			build: map[resource.Type]build{resource.ClusterType: func(v *facet.View,
				name string,
			) proto.Message {
				return cluster.Static(name, v.Facet.IPv6)
			}},
		},
		clients: content{
			fixed: proxyless.StaticNames,
			build: map[resource.Type]build{resource.ClusterType: proxyless.StaticCluster, resource.EndpointType: proxyless.StaticAssignment},
		},
	},
	node.ScopeCapture: {proxies: content{
		fixed: always(resource.ListenerType, resource.VirtualOutbound),
		build: map[resource.Type]build{resource.ListenerType: listeners(outbound.Capture)},
	}},
	node.ScopeInbound: {proxies: content{
		fixed: inbound.Names,
		build: map[resource.Type]build{resource.ListenerType: listeners(inbound.Listener), resource.ClusterType: inbound.Cluster},
	}},
	node.ScopeBound: {proxies: content{
		fixed: outbound.BoundNames,
		build: map[resource.Type]build{resource.ListenerType: listeners(outbound.Bound), resource.RouteType: outbound.BoundRoutes},
	}},
	node.ScopeNamespaced: offering,
	node.ScopeImported:   offering,
	node.ScopePrivate:    offering,
	node.ScopePublic:     offering,
	node.ScopeGateway: {proxies: content{
		fixed: edge.Names,
		build: map[resource.Type]build{
			resource.ClusterType: edge.Cluster, resource.ListenerType: listeners(edge.Listener), resource.RouteType: edge.Routes,
			resource.EndpointType: edge.Assignment,
		},
	}},
	node.ScopePassed: {proxies: content{
		fixed: snidnat.PodNames,
		names: func(t resource.Type, _ node.Facet, s *federation.Service, r *federation.Reader) []string {
			return snidnat.Names(t, s, destinationrule.SubsetNames(s.Key.Hostname, r))
		},
		build: map[resource.Type]build{resource.ClusterType: snidnat.Cluster, resource.EndpointType: snidnat.Assignment},
	}},
	node.ScopeNames: {proxies: content{
		fixed: func(t resource.Type, f node.Facet, r *federation.Reader) []string {
			if t == resource.NamesType {
				return []string{resource.NameTable}
			}
			return always(resource.ListenerType, resource.NamesListener)(t, f, r)
		},
		build: map[resource.Type]build{resource.ListenerType: listeners(dns.Listener), resource.NamesType: dns.Table},
	}},
	node.ScopePods: {proxies: content{
		fixed: headless.Names,
		build: map[resource.Type]build{
			resource.ClusterType: headless.Cluster, resource.EndpointType: headless.Assignment, resource.ListenerType: listeners(headless.Listener),
		},
	}},
	node.ScopeRoutes: {proxies: content{
		names: perPort(route.AppendNames),
		build: map[resource.Type]build{resource.RouteType: route.Planner(route.PlanPorts).Build},
		plan:  route.PlanPorts,
	}},
	node.ScopeHTTPProxy: {proxies: content{
		fixed: func(t resource.Type, f node.Facet, r *federation.Reader) []string {
			return always(resource.ListenerType, resource.HTTPProxyListener(f.Port))(t, f, r)
		},
		build: map[resource.Type]build{resource.ListenerType: listeners(outbound.HTTPProxy)},
	}},
	node.ScopeProxyRoutes: {proxies: content{
		fixed: always(resource.RouteType, resource.HTTPProxyRoutes),
		names: perPort(route.AppendProxyNames),
		build: map[resource.Type]build{resource.RouteType: route.Planner(route.PlanProxy).Build},
		plan:  route.PlanProxy,
	}},
	node.ScopeTargets: {clients: content{
		fixed: proxyless.RuledTargets,
		names: perPort(proxyless.AppendTargets),
		build: map[resource.Type]build{resource.ListenerType: proxyless.Listener, resource.RouteType: proxyless.Routes},
	}},
	node.ScopePatched: {proxies: content{
		fixed: envoyfilter.Names,
		build: map[resource.Type]build{resource.ClusterType: envoyfilter.Added, resource.ListenerType: envoyfilter.Added},
	}},
}

// always are names of one type that exist whatever the snapshot.
func always(of resource.Type, names ...string) func(resource.Type, node.Facet, *federation.Reader) []string {
	return func(t resource.Type, _ node.Facet, _ *federation.Reader) []string {
		if t != of {
			return nil
		}
		return slices.Clone(names)
	}
}

// listeners returns an untyped nil where there is no listener.
func listeners(of func(v *facet.View, name string) *listenerv3.Listener) build {
	return func(v *facet.View, name string) proto.Message {
		l := of(v, name)
		if l == nil {
			return nil
		}
		telemetry.Apply(v, l)
		return l
	}
}

// perPort are the names that each TCP port of a service contributes.
func perPort(add func([]string, resource.Type, node.Facet, service.ServedPort) []string) namer {
	return func(t resource.Type, f node.Facet, s *federation.Service, _ *federation.Reader) []string {
		var names []string
		for _, p := range s.Ports {
			if p.Protocol.Transport() == federation.TransportTCP && exposes(t, f, s, p.Number) {
				names = add(names, t, f, service.ServedPort{Service: s, Port: p})
			}
		}
		return names
	}
}

// exposes reports whether something listens for the port, or routes its requests. Its cluster may be
// the destination of a route of another port.
func exposes(t resource.Type, f node.Facet, s *federation.Service, port uint16) bool {
	return t != resource.ListenerType && t != resource.RouteType || f.Exposes(s.Key.Namespace, s.Key.Hostname, port)
}

// withSubsets adds the names of the clusters' subsets, impossible ones excepted.
func withSubsets(of namer) namer {
	return func(t resource.Type, f node.Facet, s *federation.Service, r *federation.Reader) []string {
		names := of(t, f, s, r)
		if t != resource.ClusterType && t != resource.EndpointType {
			return names
		}
		return appendSubsets(names, s.Key.Hostname, destinationrule.SubsetNames(s.Key.Hostname, r))
	}
}
