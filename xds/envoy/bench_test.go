package envoy_test

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/check"
)

// manyServices is a fixture of many HTTP services on port 80 and HTTPS services on 443.
func manyServices(services int) *federation.Snapshot {
	shards := map[federation.ServiceKey]*federation.Shard{}
	for i := range services {
		shards[key(federation.Hostname(fmt.Sprintf("s%d.shop.svc.cluster.local", i)))] = &federation.Shard{
			Ports: []federation.Port{
				{Name: "http", Number: 80, Protocol: federation.HTTP},
				{Name: "https", Number: 443, Protocol: federation.HTTPS},
			},
			VIPs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 32)},
			Endpoints: []federation.Endpoint{{
				Address: federation.IPAddress(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})),
				Ports:   []federation.EndpointPort{{Name: "http", Number: 8080}, {Name: "https", Number: 8443}},
			}},
		}
	}
	return newFixture().attach("c1", "").apply(federation.Edit{
		Source:   federation.ShardKey{Cluster: "c1", Provider: federation.Mock},
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: shards},
	}).snapshot
}

func BenchmarkBuild(b *testing.B) {
	n := envoy.Node{Type: envoy.Sidecar, Cluster: "c1", Namespace: "shop", Domain: "shop.svc.cluster.local", Capture: true}
	for _, services := range []int{250, 4000} {
		s := manyServices(services)
		for _, c := range []struct {
			typ  envoy.Type
			name string
		}{
			{envoy.ClusterType, "outbound|80||s7.shop.svc.cluster.local"},
			{envoy.EndpointType, "outbound|80||s7.shop.svc.cluster.local"},
			{envoy.ListenerType, "0.0.0.0_80"},
			{envoy.ListenerType, "10.96.0.7_443"},
			{envoy.RouteType, "80"},
		} {
			b.Run(fmt.Sprintf("%s/%s/services=%d", path.Ext(string(c.typ))[1:], c.name, services), func(b *testing.B) {
				facet := slices.IndexFunc(envoy.Facets(c.typ, n, s), func(f envoy.Facet) bool {
					m, _, err := envoy.Build(c.typ, c.name, f, s.Read())
					return err == nil && m != nil
				})
				if facet < 0 {
					b.Fatal("no facet of the proxy has the resource")
				}
				b.ReportAllocs()
				for b.Loop() {
					m, _, err := envoy.Build(c.typ, c.name, envoy.Facets(c.typ, n, s)[facet], s.Read())
					if err != nil || m == nil {
						b.Fatal(m, err)
					}
					if err := check.Resource(m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
