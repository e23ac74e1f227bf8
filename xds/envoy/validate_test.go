package envoy_test

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
)

// spoil makes a good resource bad. Where envoy is set Envoy refuses it too;
// elsewhere only this hub or gRPC does.
type spoil struct {
	typ   envoy.Type
	name  string
	want  string // in the error; empty: there is none
	envoy bool
	do    func(proto.Message)
}

func spoilCluster(do func(*clusterv3.Cluster)) func(proto.Message) {
	return func(m proto.Message) { do(m.(*clusterv3.Cluster)) }
}

func spoilEndpoints(do func(*endpointv3.LocalityLbEndpoints, *endpointv3.ClusterLoadAssignment)) func(proto.Message) {
	return func(m proto.Message) {
		a := m.(*endpointv3.ClusterLoadAssignment)
		do(a.GetEndpoints()[0], a)
	}
}

func spoilListener(do func(*listenerv3.Listener)) func(proto.Message) {
	return func(m proto.Message) { do(m.(*listenerv3.Listener)) }
}

func spoilRoutes(do func(*routev3.RouteConfiguration)) func(proto.Message) {
	return func(m proto.Message) { do(m.(*routev3.RouteConfiguration)) }
}

// spoilRoute has the first route that leads to a cluster.
func spoilRoute(do func(*routev3.Route)) func(proto.Message) {
	return spoilRoutes(func(c *routev3.RouteConfiguration) {
		for _, host := range c.GetVirtualHosts() {
			for _, r := range host.GetRoutes() {
				if r.GetRoute() != nil {
					do(r)
					return
				}
			}
		}
	})
}

func named(host string) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: webCluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
			}}},
		}}}},
	}}}
}

const webCluster = "outbound|80||web.shop.svc.cluster.local"

// One row for each rule; the table is not changed.
var spoils = map[string]spoil{
	"no connect timeout": {
		envoy.ClusterType, webCluster, "ConnectTimeout", true,
		spoilCluster(func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(0) }),
	},
	"EDS without ADS": {envoy.ClusterType, webCluster, "ADS", true, spoilCluster(func(c *clusterv3.Cluster) { c.EdsClusterConfig = nil })},
	"policy of ORIGINAL_DST": {envoy.ClusterType, "PassthroughCluster", "CLUSTER_PROVIDED", true, spoilCluster(func(c *clusterv3.Cluster) {
		c.LbPolicy = clusterv3.Cluster_ROUND_ROBIN
	})},
	"two endpoints of LOGICAL_DNS": {envoy.ClusterType, webCluster, "one endpoint", true, spoilCluster(func(c *clusterv3.Cluster) {
		c.EdsClusterConfig, c.ClusterDiscoveryType = nil, &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
	})},
	"long name": {
		envoy.ClusterType, webCluster, "bytes", false,
		spoilCluster(func(c *clusterv3.Cluster) { c.Name = strings.Repeat("x", 400) }),
	},
	"name in EDS": {
		envoy.EndpointType, webCluster, "not an IP address", true,
		spoilEndpoints(func(l *endpointv3.LocalityLbEndpoints, _ *endpointv3.ClusterLoadAssignment) {
			l.GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().Address = "backend.example.com"
		}),
	},
	"endpoint twice": {
		envoy.EndpointType, webCluster, "twice", false,
		spoilEndpoints(func(l *endpointv3.LocalityLbEndpoints, _ *endpointv3.ClusterLoadAssignment) {
			l.LbEndpoints = append(l.LbEndpoints, l.GetLbEndpoints()[0])
		}),
	},
	"locality twice": {
		envoy.EndpointType, webCluster, "twice", false,
		spoilEndpoints(func(l *endpointv3.LocalityLbEndpoints, a *endpointv3.ClusterLoadAssignment) {
			a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{Locality: l.GetLocality(), LoadBalancingWeight: wrapperspb.UInt32(1)})
		}),
	},
	"priority gap": {
		envoy.EndpointType, webCluster, "contiguous", false,
		spoilEndpoints(func(l *endpointv3.LocalityLbEndpoints, _ *endpointv3.ClusterLoadAssignment) {
			l.Priority = 1
		}),
	},
	"no locality weight": {
		envoy.EndpointType, webCluster, "load_balancing_weight", false,
		spoilEndpoints(func(l *endpointv3.LocalityLbEndpoints, _ *endpointv3.ClusterLoadAssignment) {
			l.LoadBalancingWeight = nil
		}),
	},
	"weight sum": {
		envoy.EndpointType, webCluster, "add up", false,
		spoilEndpoints(func(l *endpointv3.LocalityLbEndpoints, a *endpointv3.ClusterLoadAssignment) {
			l.LoadBalancingWeight = wrapperspb.UInt32(1<<32 - 1)
			second := proto.Clone(l).(*endpointv3.LocalityLbEndpoints)
			second.Locality.Region = "elsewhere"
			second.GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress().Address = "10.0.0.77"
			a.Endpoints = append(a.Endpoints, second)
		}),
	},
	"packed metadata": {
		envoy.EndpointType, webCluster, "invalid Cluster.Name", false,
		spoilEndpoints(func(l *endpointv3.LocalityLbEndpoints, _ *endpointv3.ClusterLoadAssignment) {
			l.GetLbEndpoints()[0].Metadata = &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"x": {TypeUrl: string(envoy.ClusterType)}}}
		}),
	},
	"a duration deep inside": {envoy.ClusterType, webCluster, "duration", true, spoilCluster(func(c *clusterv3.Cluster) {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{UpdateMergeWindow: &durationpb.Duration{Seconds: -1}}
	})},
	"chain twice": {envoy.ListenerType, "virtualInbound", "same match", true, spoilListener(func(l *listenerv3.Listener) {
		l.FilterChains = append(l.FilterChains, l.GetFilterChains()[0])
	})},
	"listener at a name": {envoy.ListenerType, "virtualInbound", "not an IP address", true, spoilListener(func(l *listenerv3.Listener) {
		l.GetAddress().GetSocketAddress().Address = "localhost"
	})},
	"packed filter": {envoy.ListenerType, "virtualInbound", "StatPrefix", true, spoilListener(func(l *listenerv3.Listener) {
		l.GetDefaultFilterChain().GetFilters()[0].GetTypedConfig().Value = nil
	})},
	"chains that overlap": {envoy.ListenerType, "virtualInbound", "server name", true, spoilListener(func(l *listenerv3.Listener) {
		for _, names := range [][]string{{"a.com", "b.com"}, {"b.com", "c.com"}} {
			chain := proto.Clone(l.GetDefaultFilterChain()).(*listenerv3.FilterChain)
			chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: names}
			l.FilterChains = append(l.FilterChains, chain)
		}
	})},
	"chains of one block": {envoy.ListenerType, "virtualInbound", "10.0.0.0/8", true, spoilListener(func(l *listenerv3.Listener) {
		for _, from := range []string{"10.0.0.0", "10.1.2.3"} {
			chain := proto.Clone(l.GetDefaultFilterChain()).(*listenerv3.FilterChain)
			chain.FilterChainMatch = &listenerv3.FilterChainMatch{
				PrefixRanges: []*corev3.CidrRange{{AddressPrefix: from, PrefixLen: wrapperspb.UInt32(8)}},
			}
			l.FilterChains = append(l.FilterChains, chain)
		}
	})},
	"a wildcard within a name": {envoy.ListenerType, "virtualInbound", "wildcard", true, spoilListener(func(l *listenerv3.Listener) {
		chain := proto.Clone(l.GetDefaultFilterChain()).(*listenerv3.FilterChain)
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"a*.com"}}
		l.FilterChains = append(l.FilterChains, chain)
	})},
	"weights without a sum": {envoy.RouteType, "80", "weights", true, spoilRoute(func(r *routev3.Route) {
		r.GetRoute().ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: &routev3.WeightedCluster{
			Clusters: []*routev3.WeightedCluster_ClusterWeight{{Name: webCluster, Weight: wrapperspb.UInt32(0)}},
		}}
	})},
	"weights with too large a sum": {envoy.RouteType, "80", "weights", true, spoilRoute(func(r *routev3.Route) {
		most := &routev3.WeightedCluster_ClusterWeight{Name: webCluster, Weight: wrapperspb.UInt32(1<<32 - 1)}
		r.GetRoute().ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: &routev3.WeightedCluster{
			Clusters: []*routev3.WeightedCluster_ClusterWeight{most, most},
		}}
	})},
	"bytes among characters": {envoy.RouteType, "80", "regular expression", true, spoilRoute(func(r *routev3.Route) {
		r.GetMatch().PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: `[\C]`}}
	})},
	"an expression that is not one": {envoy.RouteType, "80", "regular expression", true, spoilRoute(func(r *routev3.Route) {
		r.GetMatch().PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "a("}}
	})},
	"a name in a STATIC cluster": {envoy.ClusterType, webCluster, "not an IP address", true, spoilCluster(func(c *clusterv3.Cluster) {
		c.EdsClusterConfig, c.ClusterDiscoveryType = nil, &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
		c.LoadAssignment = named("backend.example.com")
	})},
	"a name twice in a chain": {envoy.ListenerType, "virtualInbound", "same match", true, spoilListener(func(l *listenerv3.Listener) {
		chain := proto.Clone(l.GetDefaultFilterChain()).(*listenerv3.FilterChain)
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"a.com", "a.com"}}
		l.FilterChains = append(l.FilterChains, chain)
	})},
	"the name of all servers": {envoy.ListenerType, "virtualInbound", "wildcard", true, spoilListener(func(l *listenerv3.Listener) {
		chain := proto.Clone(l.GetDefaultFilterChain()).(*listenerv3.FilterChain)
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"*"}}
		l.FilterChains = append(l.FilterChains, chain)
	})},
	"domain twice": {envoy.RouteType, "80", "twice", true, spoilRoutes(func(c *routev3.RouteConfiguration) {
		h := c.GetVirtualHosts()[0]
		h.Domains = append(h.Domains, strings.ToUpper(h.GetDomains()[0]))
	})},
	"virtual host twice": {envoy.RouteType, "80", "twice", false, spoilRoutes(func(c *routev3.RouteConfiguration) {
		c.GetVirtualHosts()[1].Name = c.GetVirtualHosts()[0].GetName()
	})},
}

func TestBadResourcesAreNeverSent(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	for name, s := range spoils {
		t.Run(name, func(t *testing.T) { s.judge(t, w) })
	}
}

// What Envoy accepts though it looks bad; the table is not changed.
var odd = map[string]spoil{
	"names of Redis": {envoy.ClusterType, webCluster, "", false, spoilCluster(func(c *clusterv3.Cluster) {
		c.EdsClusterConfig, c.LbPolicy = nil, clusterv3.Cluster_CLUSTER_PROVIDED
		c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.redis", TypedConfig: &anypb.Any{TypeUrl: "type.googleapis.com/google.protobuf.Struct"},
		}}
		c.LoadAssignment = named("backend.example.com")
	})},
	"wildcards after the first": {envoy.ListenerType, "virtualInbound", "", false, spoilListener(func(l *listenerv3.Listener) {
		chain := proto.Clone(l.GetDefaultFilterChain()).(*listenerv3.FilterChain)
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"*.*.example", "*.a*.example"}}
		l.FilterChains = append(l.FilterChains, chain)
	})},
	"an expression of bytes": {envoy.RouteType, "80", "", false, spoilRoute(func(r *routev3.Route) {
		r.GetMatch().PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: `/a\C{2}(\C|b)`}}
	})},
}

func TestG89OddResourcesThatEnvoyAcceptsAreSent(t *testing.T) {
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080)))
	for name, s := range odd {
		t.Run(name, func(t *testing.T) { s.judge(t, w) })
	}
}

func (s spoil) judge(t *testing.T, w *fixture) {
	t.Parallel()
	built := buildAll(t, client(t), w.snapshot)
	m, _ := find[proto.Message](t, built[s.typ], s.name)
	s.do(m)
	err := check.Resource(m)
	if (err == nil) != (s.want == "") || err != nil && !strings.Contains(err.Error(), s.want) {
		t.Errorf("it is judged: %v; want an error with %q", err, s.want)
	}
	if refused := testbed.ValidateEnvoy(t, bootstrap(t, built)) != nil; refused != s.envoy {
		t.Errorf("Envoy refuses it: %t, want %t", refused, s.envoy)
	}
}
