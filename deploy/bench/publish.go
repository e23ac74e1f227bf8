package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"isthmus.dev/isthmus/federation"
)

const benchCluster federation.ClusterID = "c1"

func source() federation.ShardKey {
	return federation.ShardKey{Cluster: benchCluster, Provider: federation.Mock}
}

func serviceKey(i int) federation.ServiceKey {
	return federation.ServiceKey{Hostname: federation.Hostname(fmt.Sprintf("s%d.ns.svc.cluster.local", i)), Namespace: "ns"}
}

// shard is a service with ten endpoints in three zones; the last endpoint
// depends on turn.
func shard(i, turn int) *federation.Shard {
	s := &federation.Shard{
		Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}},
		VIPs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96 + byte(i>>16), byte(i >> 8), byte(i)}), 32)},
	}
	for e := range 10 {
		last := byte(e)
		if e == 9 {
			last += byte(turn % 200)
		}
		s.Endpoints = append(s.Endpoints, federation.Endpoint{
			Address:  federation.IPAddress(netip.AddrFrom4([4]byte{172, byte(i >> 8), byte(i), last})),
			Ports:    []federation.EndpointPort{{Name: "http", Number: 8080}},
			Locality: federation.Locality{Region: "r1", Zone: fmt.Sprintf("z%d", e%3)},
			Health:   federation.Healthy,
		})
	}
	return s
}

// fill is the full edit of a registry with n services.
func fill(n int) federation.Edit {
	e := federation.Edit{Source: source(), Status: &federation.RegistryStatus{Phase: federation.Ready}}
	e.Services.Full, e.Services.Set = true, make(map[federation.ServiceKey]*federation.Shard, n)
	for i := range n {
		e.Services.Set[serviceKey(i)] = shard(i, 0)
	}
	return e
}

func change(i, turn int) federation.Edit {
	return federation.Edit{Source: source(), Services: federation.Delta[federation.ServiceKey, *federation.Shard]{
		Set: map[federation.ServiceKey]*federation.Shard{serviceKey(i): shard(i, turn)},
	}}
}

// publishCost is the median time of publishing one endpoint change.
func publishCost(services int) time.Duration {
	s, _ := federation.Next(federation.Empty(), fill(services))
	runtime.GC()
	times := make([]time.Duration, 2000)
	for turn := range times {
		e := change(turn%services, turn+1)
		began := time.Now()
		s, _ = federation.Next(s, e)
		times[turn] = time.Since(began)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
