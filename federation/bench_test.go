package federation

import (
	"fmt"
	"testing"
)

// snapshotOf holds n services with ten endpoints each.
func snapshotOf(n int) *Snapshot {
	services := make(map[ServiceKey]*Shard, n)
	for i := range n {
		services[key(fmt.Sprintf("s%d.ns.svc.cluster.local", i), "ns")] = tenEndpoints(i, 0)
	}
	return after(set(shardOf("c1"), services))
}

// tenEndpoints gives the service ten endpoints; the last one depends on turn.
func tenEndpoints(service, turn int) *Shard {
	s := web("")
	for e := range 10 {
		last := e
		if e == 9 {
			last += turn
		}
		s.Endpoints = append(s.Endpoints, endpoint(fmt.Sprintf("10.%d.%d.%d", service>>8&255, service&255, last), 8080))
	}
	return s
}

// BenchmarkPublishEndpointChange shows that the cost of a change does not grow
// with the number of services.
func BenchmarkPublishEndpointChange(b *testing.B) {
	for _, n := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			s := snapshotOf(n)
			k := key("s7.ns.svc.cluster.local", "ns")
			turns := [2]*Shard{tenEndpoints(7, 1), tenEndpoints(7, 2)}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				s, _ = Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: turns[i%2]}))
			}
		})
	}
}

// namespaceOf is a namespace of n workloads, ten of which a selector finds.
func namespaceOf(n int) *Snapshot {
	all := make(map[WorkloadKey]*Workload, n)
	for i := range n {
		app := "other"
		if i%(n/10) == 0 {
			app = "x"
		}
		all[we(fmt.Sprintf("w%d", i))] = entry(fmt.Sprintf("10.3.%d.%d", i>>8, i&255), "app", app)
	}
	return after(set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}), workloads(hub, all))
}

// BenchmarkSelectedWorkloadChange shows what a change of one of ten selected
// workloads costs: a look at the labels of those in its namespace.
func BenchmarkSelectedWorkloadChange(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("workloads=%d", n), func(b *testing.B) {
			benchmarkWorkload(b, namespaceOf(n), we("w0"), 1)
		})
	}
}

// BenchmarkWorkloadChangeWithoutSelector shows that a workload in a namespace
// without selectors costs the same, however many services there are.
func BenchmarkWorkloadChangeWithoutSelector(b *testing.B) {
	for _, n := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			benchmarkWorkload(b, snapshotOf(n), we("w0"), 0)
		})
	}
}

func benchmarkWorkload(b *testing.B, s *Snapshot, k WorkloadKey, want int) {
	turns := [2]*Workload{entry("10.3.0.0", "app", "x", "v", "1"), entry("10.3.0.0", "app", "x", "v", "2")}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		var c ChangeSet
		s, c = Next(s, workloads(hub, map[WorkloadKey]*Workload{k: turns[i%2]}))
		if len(c.Services) != want {
			b.Fatalf("%d services changed, want %d", len(c.Services), want)
		}
	}
}

// BenchmarkPublishBesideGateways is BenchmarkPublishEndpointChange in a mesh of a hundred
// networks with labelled gateways: none of these is made again for it.
func BenchmarkPublishBesideGateways(b *testing.B) {
	s := snapshotOf(1000)
	for i := range 100 {
		network := fmt.Sprint("n", i)
		id := fmt.Sprint("gw", i)
		s, _ = Next(s, attach(ClusterID(id), NetworkID(network)))
		s, _ = Next(s, set(shardOf(id), map[ServiceKey]*Shard{gatewayService: eastWest(network, fmt.Sprint("192.0.2.", i+1))}))
	}
	k := key("s7.ns.svc.cluster.local", "ns")
	turns := [2]*Shard{tenEndpoints(7, 1), tenEndpoints(7, 2)}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		var c ChangeSet
		s, c = Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: turns[i%2]}))
		if len(c.Networks) > 0 {
			b.Fatalf("networks %v changed", c.Networks)
		}
	}
}
