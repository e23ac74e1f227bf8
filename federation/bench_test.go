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
