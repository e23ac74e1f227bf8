package envoy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// grpcClient is a gRPC client in cluster c1 without a proxy.
func grpcClient(t fataler) envoy.Node {
	return parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local",
		map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "shop", "GENERATOR": "grpc"})
}

func TestGRPCLibrariesAreToldFromProxies(t *testing.T) {
	for _, c := range []struct {
		agent, generator string
		want             bool
	}{
		{"gRPC Go", "", true}, {"gRPC C-core linux", "", true}, {"envoy", "", false}, {"envoy", "grpc", true}, {"", "", false},
	} {
		n := grpcNodeMessage(t, c.generator)
		n.UserAgentName = c.agent
		got, err := envoy.ParseNode(n)
		if err != nil {
			t.Fatal(err)
		}
		if got.GRPC != c.want || got.GRPC && (got.Capture || got.HTTPProxyPort != 0) {
			t.Errorf("user agent %q, generator %q: %+v, want gRPC %t", c.agent, c.generator, got, c.want)
		}
	}
}

func grpcNodeMessage(t *testing.T, generator string) *corev3.Node {
	t.Helper()
	n := &corev3.Node{Id: "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local"}
	n.Metadata = fields(t, map[string]any{"GENERATOR": generator, "HTTP_PROXY_PORT": "15080"})
	return n
}

// grpcEndpoints writes the endpoints of a gRPC client as PRIORITY LOCALITY*WEIGHT: ADDRESS*WEIGHT.
func grpcEndpoints(t *testing.T, w *fixture) []string {
	t.Helper()
	a, _ := find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, grpcClient(t), w.snapshot), webCluster)
	var all []string
	for _, g := range a.GetEndpoints() {
		l := g.GetLocality()
		text := fmt.Sprintf("%d %s/%s*%d:", g.GetPriority(), l.GetZone(), l.GetSubZone(), g.GetLoadBalancingWeight().GetValue())
		for _, e := range g.GetLbEndpoints() {
			text += fmt.Sprintf(" %s*%d", e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress(), e.GetLoadBalancingWeight().GetValue())
			if e.GetHealthStatus() != corev3.HealthStatus_HEALTHY {
				t.Errorf("%s is %s: gRPC would never use it", text, e.GetHealthStatus())
			}
		}
		all = append(all, text)
	}
	return all
}

func weighing(address, zone string, weight uint32) federation.Endpoint {
	e := at(address, 8080)
	e.Weight, e.Locality = weight, federation.Locality{Region: "r", Zone: zone, SubZone: "s"}
	return e
}

// gRPC gives the endpoints of a locality the same share, uses none that drains,
// and refuses sockets.
func TestGRPCEndpointsCarryWeightsByLocality(t *testing.T) {
	draining := weighing("10.0.0.5", "a", 2)
	draining.Health = federation.Draining
	ring := "kind: DestinationRule\nmetadata: {name: web, namespace: shop}\nspec: {host: web.shop.svc.cluster.local, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x}}}}"
	for name, c := range map[string]struct {
		endpoints []federation.Endpoint
		config    string
		want      []string
	}{
		"equal": {
			[]federation.Endpoint{weighing("10.0.0.1", "a", 3), weighing("10.0.0.2", "a", 3), weighing("10.0.0.3", "b", 1)},
			"",
			[]string{"0 a/s*6: 10.0.0.1*0 10.0.0.2*0", "0 b/s*1: 10.0.0.3*0"},
		},
		"different": {
			[]federation.Endpoint{weighing("10.0.0.1", "a", 7), weighing("10.0.0.2", "a", 1), weighing("10.0.0.3", "a", 7)},
			"",
			[]string{"0 a/s~weight-1*1: 10.0.0.2*0", "0 a/s~weight-7*14: 10.0.0.1*0 10.0.0.3*0"},
		},
		"ring": {
			[]federation.Endpoint{weighing("10.0.0.1", "a", 7), weighing("10.0.0.2", "a", 1)},
			ring,
			[]string{"0 a/s*8: 10.0.0.1*7 10.0.0.2*0"},
		},
		"draining": {
			[]federation.Endpoint{weighing("10.0.0.1", "b", 1), draining},
			"",
			[]string{"0 b/s*1: 10.0.0.1*0", "1 a/s*2: 10.0.0.5*0"},
		},
		"all drain": {[]federation.Endpoint{draining}, "", []string{"0 a/s*2: 10.0.0.5*0"}},
		"sockets": {
			[]federation.Endpoint{weighing("10.0.0.1", "a", 1), at("unix:/run/a", 0), at("unix:/run/b", 0)},
			"",
			[]string{"0 a/s*1: 10.0.0.1*0"},
		},
		"great": {
			[]federation.Endpoint{weighing("10.0.0.1", "a", 1<<32-1), weighing("10.0.0.2", "b", 1<<32-1)},
			"",
			[]string{"0 a/s*2147483647: 10.0.0.1*0", "0 b/s*2147483647: 10.0.0.2*0"},
		},
		"none at all": {nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture().attach("c1", "").say("c1", webKey, web(c.endpoints...))
			if c.config != "" {
				w.config(t, c.config)
			}
			if got := grpcEndpoints(t, w); !slices.Equal(got, c.want) {
				t.Errorf("endpoints are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// A service that is found by DNS is one name, or its addresses.
func TestGRPCResolvesOneName(t *testing.T) {
	for name, c := range map[string]struct {
		endpoints  []federation.Endpoint
		resolution federation.Resolution
		typ        clusterv3.Cluster_DiscoveryType
		want       string
		codes      []string
	}{
		"names": {
			[]federation.Endpoint{at("b.example", 8080), at("a.example", 8080)},
			federation.DNSLB, clusterv3.Cluster_LOGICAL_DNS,
			"a.example",
			[]string{"ONE_ADDRESS_ONLY b.example"},
		},
		"addresses": {
			[]federation.Endpoint{at("10.0.0.1", 8080), at("a.example", 8080)},
			federation.DNSLB, clusterv3.Cluster_EDS, "10.0.0.1",
			[]string{"HOSTNAME a.example"},
		},
		"nothing":    {nil, federation.DNSRoundRobinLB, clusterv3.Cluster_EDS, "", nil},
		"passed on":  {[]federation.Endpoint{at("10.0.0.1", 8080)}, federation.Passthrough, clusterv3.Cluster_EDS, "10.0.0.1", nil},
		"name alone": {[]federation.Endpoint{at("a.example", 8080)}, federation.ClientSideLB, clusterv3.Cluster_EDS, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			shard := web(c.endpoints...)
			shard.Resolution = c.resolution
			w := newFixture().attach("c1", "").say("c1", webKey, shard)
			cluster, reasons := find[*clusterv3.Cluster](t, build(t, envoy.ClusterType, grpcClient(t), w.snapshot), webCluster)
			a := cluster.GetLoadAssignment()
			if cluster.GetType() == clusterv3.Cluster_EDS {
				a, _ = find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, grpcClient(t), w.snapshot), webCluster)
			}
			got := ""
			for _, g := range a.GetEndpoints() {
				for _, e := range g.GetLbEndpoints() {
					got += e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
				}
			}
			if cluster.GetType() != c.typ || got != c.want || !slices.Equal(codes(reasons), c.codes) {
				t.Errorf("%s of %q, reasons %q; want %s of %q, %q", cluster.GetType(), got, codes(reasons), c.typ, c.want, c.codes)
			}
		})
	}
}

func drawGRPCNode(t *rapid.T) envoy.Node {
	namespace := rapid.SampledFrom([]string{"shop", "other", ""}).Draw(t, "client namespace")
	metadata := map[string]any{
		"GENERATOR": "grpc", "CLUSTER_ID": rapid.SampledFrom([]string{"c1", "c2", ""}).Draw(t, "cluster"),
		"NAMESPACE": namespace,
	}
	domain := rapid.SampledFrom([]string{"shop.svc.cluster.local", "other.svc.cluster.local", "shop", ""}).Draw(t, "domain")
	return parse(t, "sidecar~10.0.0.1~app~"+domain, metadata)
}

// Whatever registries say: a gRPC client gets valid resources, every name that
// is referred to exists, and no two clients of one namespace need two builds.
func TestGRPCAnySnapshotGivesValidResources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := drawSnapshot(t), drawGRPCNode(t)
		built := buildAll(t, n, s)
		checkReferences(t, n, built)
		for _, r := range built[envoy.ClusterType] {
			c := r.message.(*clusterv3.Cluster)
			if typ := c.GetType(); typ != clusterv3.Cluster_EDS && typ != clusterv3.Cluster_LOGICAL_DNS || c.GetTransportSocket() != nil {
				t.Fatalf("%s is a cluster that gRPC refuses: %s", r.name, c)
			}
		}
		for _, r := range built[envoy.EndpointType] {
			for _, g := range r.message.(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
				for _, e := range g.GetLbEndpoints() {
					if e.GetEndpoint().GetAddress().GetPipe() != nil {
						t.Fatalf("%s has a socket", r.name)
					}
				}
			}
		}
		for typ, again := range buildAll(t, n, s) {
			for i, r := range again {
				if !proto.Equal(r.message, built[typ][i].message) {
					t.Fatalf("%s %s differs when built again", typ, r.name)
				}
			}
		}
	})
}
