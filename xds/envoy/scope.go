package envoy

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/cluster"
	"isthmus.dev/isthmus/xds/envoy/destination"
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

// content is the resources of a scope, by type.
type content map[resource.Type]resources

// resources says which resources of one type a scope has, and how they are made.
type resources struct {
	// fixed are the names that exist whatever the services; nil: none.
	fixed func(node.Facet, *federation.Reader) []string
	// names are those that a service contributes; nil: none.
	names namer
	// build makes one. It returns an untyped nil where the name does not exist.
	build build
	// plan plans the routes, if they consist of virtual hosts that are built one by one; nil: they are built whole.
	plan route.Planner
}

// namer lists the names that a service contributes, in any order (Contributes).
type namer func(node.Facet, *federation.Service, *federation.Reader) []string

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
		resource.ClusterType:  {names: withSubsets(perPort(outbound.AppendCluster)), build: cluster.Build},
		resource.EndpointType: {names: withSubsets(perPort(outbound.AppendAssignment)), build: endpoint.Assignment},
		resource.ListenerType: {names: withPods(perExposedPort(outbound.AppendListeners)), build: listeners(outbound.Listener)},
	},
	clients: content{
		resource.ClusterType:  {names: withSubsets(perPort(proxyless.AppendName)), build: proxyless.Cluster},
		resource.EndpointType: {names: withSubsets(perPort(proxyless.AppendName)), build: proxyless.Assignment},
	},
}

// scopes has a row for each scope, in their order.
var scopes = map[node.Scope]scope{
	node.ScopeStatic: {
		proxies: content{resource.ClusterType: {
			fixed: always(resource.BlackHoleCluster, resource.InboundPassthroughCluster, resource.PassthroughCluster),
			build: func(v *facet.View, name string) proto.Message { return cluster.Static(name, v.Facet.IPv6) },
		}},
		clients: content{
			resource.ClusterType:  {fixed: always(resource.BlackHoleCluster), build: proxyless.StaticCluster},
			resource.EndpointType: {fixed: always(resource.BlackHoleCluster), build: proxyless.StaticAssignment},
		},
	},
	node.ScopeCapture: {proxies: content{
		resource.ListenerType: {fixed: always(resource.VirtualOutbound), build: listeners(outbound.Capture)},
	}},
	node.ScopeInbound: {proxies: content{
		resource.ListenerType: {fixed: inbound.ListenerNames, build: listeners(inbound.Listener)},
		resource.ClusterType:  {fixed: inbound.ClusterNames, build: inbound.Cluster},
	}},
	node.ScopeBound: {proxies: content{
		resource.ListenerType: {fixed: outbound.BoundNames, build: listeners(outbound.Bound)},
		resource.RouteType:    {fixed: outbound.BoundRouteNames, build: outbound.BoundRoutes},
	}},
	node.ScopeNamespaced: offering,
	node.ScopeImported:   offering,
	node.ScopePrivate:    offering,
	node.ScopePublic:     offering,
	node.ScopeGateway: {proxies: content{
		resource.ClusterType:  {fixed: edge.ClusterNames, build: edge.Cluster},
		resource.EndpointType: {fixed: edge.AssignmentNames, build: edge.Assignment},
		resource.ListenerType: {fixed: edge.ListenerNames, build: listeners(edge.Listener)},
		resource.RouteType:    {fixed: edge.RouteNames, build: edge.Routes},
	}},
	node.ScopePassed: {proxies: content{
		resource.ClusterType:  {fixed: snidnat.PodNames, names: passed, build: snidnat.Cluster},
		resource.EndpointType: {fixed: snidnat.PodNames, names: passed, build: snidnat.Assignment},
	}},
	node.ScopeNames: {proxies: content{
		resource.ListenerType: {fixed: always(resource.NamesListener), build: listeners(dns.Listener)},
		resource.NamesType:    {fixed: always(resource.NameTable), build: dns.Table},
	}},
	node.ScopePods: {proxies: content{
		resource.ClusterType:  {fixed: headless.Names, build: headless.Cluster},
		resource.EndpointType: {fixed: headless.Names, build: headless.Assignment},
		resource.ListenerType: {fixed: headless.ListenerNames, build: listeners(headless.Listener)},
	}},
	node.ScopeRoutes: {proxies: content{
		resource.RouteType: {
			names: perExposedPort(route.AppendNames), build: route.Planner(route.PlanPorts).Build, plan: route.PlanPorts,
		},
	}},
	node.ScopeHTTPProxy: {proxies: content{
		resource.ListenerType: {
			fixed: func(f node.Facet, _ *federation.Reader) []string { return []string{resource.HTTPProxyListener(f.Port)} },
			build: listeners(outbound.HTTPProxy),
		},
	}},
	node.ScopeProxyRoutes: {proxies: content{
		resource.RouteType: {
			fixed: always(resource.HTTPProxyRoutes), names: perExposedPort(route.AppendProxyNames),
			build: route.Planner(route.PlanProxy).Build, plan: route.PlanProxy,
		},
	}},
	node.ScopeTargets: {clients: content{
		resource.ListenerType: {
			fixed: proxyless.RuledTargets, names: perExposedPort(proxyless.AppendTargets), build: proxyless.Listener,
		},
		resource.RouteType: {
			fixed: proxyless.RuledTargets, names: perExposedPort(proxyless.AppendRouteTarget), build: proxyless.Routes,
		},
	}},
	node.ScopePatched: {proxies: content{
		resource.ClusterType:  {fixed: envoyfilter.Names(resource.ClusterType), build: envoyfilter.Added},
		resource.ListenerType: {fixed: envoyfilter.Names(resource.ListenerType), build: envoyfilter.Added},
	}},
}

// always are names that exist whatever the snapshot.
func always(names ...string) func(node.Facet, *federation.Reader) []string {
	return func(node.Facet, *federation.Reader) []string { return slices.Clone(names) }
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
func perPort(add func([]string, node.Facet, service.ServedPort) []string) namer {
	return func(f node.Facet, s *federation.Service, _ *federation.Reader) []string {
		var names []string
		for _, p := range s.Ports {
			if p.Protocol.Transport() == federation.TransportTCP {
				names = add(names, f, service.ServedPort{Service: s, Port: p})
			}
		}
		return names
	}
}

// perExposedPort is perPort for what listens for a port or routes its requests: it is not there where a Sidecar does not
// import the port. The cluster of the port may be the destination of a route of another one.
func perExposedPort(add func([]string, node.Facet, service.ServedPort) []string) namer {
	return perPort(func(names []string, f node.Facet, p service.ServedPort) []string {
		if !f.Exposes(p.Service.Key.Namespace, p.Service.Key.Hostname, p.Port.Number) {
			return names
		}
		return add(names, f, p)
	})
}

// withSubsets adds the names of the clusters' subsets, impossible ones excepted.
func withSubsets(of namer) namer {
	return func(f node.Facet, s *federation.Service, r *federation.Reader) []string {
		return appendSubsets(of(f, s, r), s.Key.Hostname, destinationrule.SubsetNames(s.Key.Hostname, r))
	}
}

// withPods reads the endpoints of headless services: their listeners are at their pods.
func withPods(of namer) namer {
	return func(f node.Facet, s *federation.Service, r *federation.Reader) []string {
		if service.IsHeadless(s) {
			r.Endpoints(s.Key)
		}
		return of(f, s, r)
	}
}

// passed are the names under which a router in sni-dnat mode passes connections on to a service.
func passed(_ node.Facet, s *federation.Service, r *federation.Reader) []string {
	return destination.PassedNames(s, destinationrule.SubsetNames(s.Key.Hostname, r))
}
