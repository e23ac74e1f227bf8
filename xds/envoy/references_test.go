package envoy_test

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"isthmus.dev/isthmus/xds/envoy"
)

// checkReferences demands that clusters, assignments and routes that resources
// of a node refer to exist, and that no assignment or route is unused. Those of a port without
// a protocol may be: no proxy asks for them that has no listener at the service's addresses.
func checkReferences(t fataler, n envoy.Node, built map[envoy.Type][]builtResource) {
	t.Helper()
	var clusters, assignments, routes []string
	for _, r := range built[envoy.ClusterType] {
		if r.message.(*clusterv3.Cluster).GetType() == clusterv3.Cluster_EDS {
			assignments = append(assignments, r.name)
		}
	}
	for _, r := range built[envoy.RouteType] {
		clusters = append(clusters, routedTo(r.message.(*routev3.RouteConfiguration))...)
	}
	for _, r := range built[envoy.ListenerType] {
		c, rds := listenerRefersTo(t, r.message.(*listenerv3.Listener))
		clusters, routes = append(clusters, c...), append(routes, rds...)
	}
	for _, name := range clusters {
		if !slices.Contains(namesOf(built[envoy.ClusterType]), name) {
			t.Fatalf("the cluster %s does not exist, only %q", name, namesOf(built[envoy.ClusterType]))
		}
	}
	checkAssignments(t, assignments, built)
	slices.Sort(routes)
	routes = slices.Compact(routes)
	same(t, "route configurations", routes, slices.DeleteFunc(namesOf(built[envoy.RouteType]), func(name string) bool {
		return !slices.Contains(routes, name) && !n.GRPC && (strings.Contains(name, ":") || isTakenBySidecar(built, name))
	}))
}

// isTakenBySidecar reports whether the routes are those of a port at which a Sidecar listens itself, at all addresses.
// Captured requests to the port reach that listener, as in Istio. Proxies ask for the routes that a listener names.
func isTakenBySidecar(built map[envoy.Type][]builtResource, port string) bool {
	return slices.ContainsFunc(built[envoy.ListenerType], func(r builtResource) bool {
		return r.name == "0.0.0.0_"+port && r.message.(*listenerv3.Listener).GetBindToPort() == nil
	})
}

// checkAssignments demands the assignments that clusters refer to. Another one may
// exist only beside a cluster for which a namespace's own rules found a better way.
func checkAssignments(t fataler, wanted []string, built map[envoy.Type][]builtResource) {
	t.Helper()
	clusters, have := namesOf(built[envoy.ClusterType]), namesOf(built[envoy.EndpointType])
	same(t, "assignments", wanted, slices.DeleteFunc(have, func(name string) bool {
		return !slices.Contains(wanted, name) && slices.Contains(clusters, name)
	}))
}

func same(t fataler, what string, wanted, have []string) {
	t.Helper()
	slices.Sort(wanted)
	slices.Sort(have)
	if !slices.Equal(wanted, have) {
		t.Fatalf("%s %q are referred to, %q exist", what, wanted, have)
	}
}

func routedTo(c *routev3.RouteConfiguration) []string {
	var clusters []string
	for _, host := range c.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			action := route.GetRoute()
			if name := action.GetCluster(); name != "" {
				clusters = append(clusters, name)
			}
			for _, w := range action.GetWeightedClusters().GetClusters() {
				clusters = append(clusters, w.GetName())
			}
			for _, mirror := range action.GetRequestMirrorPolicies() {
				clusters = append(clusters, mirror.GetCluster())
			}
		}
	}
	return clusters
}

func listenerRefersTo(t fataler, l *listenerv3.Listener) (clusters, routes []string) {
	t.Helper()
	if api := l.GetApiListener().GetApiListener(); api != nil {
		var m hcmv3.HttpConnectionManager
		if err := api.UnmarshalTo(&m); err != nil {
			t.Fatalf("unpacking %s: %v", l.GetName(), err)
		}
		return nil, []string{m.GetRds().GetRouteConfigName()}
	}
	for _, chain := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		for _, filter := range chain.GetFilters() {
			m, err := filter.GetTypedConfig().UnmarshalNew()
			if err != nil {
				t.Fatalf("unpacking a filter of %s: %v", l.GetName(), err)
			}
			switch m := m.(type) {
			case *tcpproxyv3.TcpProxy:
				if m.GetCluster() != "" {
					clusters = append(clusters, m.GetCluster())
				}
				for _, w := range m.GetWeightedClusters().GetClusters() {
					clusters = append(clusters, w.GetName())
				}
			case *hcmv3.HttpConnectionManager:
				clusters = append(clusters, routedTo(m.GetRouteConfig())...)
				if m.GetRds() != nil {
					routes = append(routes, m.GetRds().GetRouteConfigName())
				}
			}
		}
	}
	return clusters, routes
}
