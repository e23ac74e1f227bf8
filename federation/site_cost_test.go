package federation

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestR61AnAddressOfManyServicesCostsNoMore: who looks for the workload of a proxy does not
// list the services that have endpoints at its address, of which there are many where
// they share a gateway.
func TestR61AnAddressOfManyServicesCostsNoMore(t *testing.T) {
	allocations := func(services int) float64 {
		all := make(map[ServiceKey]*Shard, services)
		for i := range services {
			s := web("")
			s.Endpoints = []Endpoint{endpoint("10.9.0.1", 80)}
			all[key(fmt.Sprintf("s%d.ns.svc.cluster.local", i), "ns")] = s
		}
		pod := WorkloadKey{Namespace: "ns", Name: "pod"}
		s := after(set(shardOf("c1"), all), workloads(shardOf("c1"), map[WorkloadKey]*Workload{pod: entry("10.9.0.1")}))
		place := Place{Cluster: "c1", Addresses: []netip.Addr{netip.MustParseAddr("10.9.0.1")}}
		if found := s.At(place).Instances(); len(found) != services {
			t.Fatalf("%d instances at the address of %d services", len(found), services)
		}
		return testing.AllocsPerRun(10, func() {
			found, ok := s.At(place).Registered(WorkloadKey{Namespace: "ns", Name: "renamed"})
			if all := s.At(place).Workloads(); !ok || len(all) != 1 || found.Workload != all[0] {
				t.Fatalf("registered %v, of %d workloads", ok, len(all))
			}
		})
	}
	if few, many := allocations(2), allocations(2000); many > few {
		t.Errorf("%v allocations at an address of 2,000 services, %v at one of 2", many, few)
	}
}

// TestOwnersOfSeveralAddressesAreFoundOnce in the order of the addresses.
func TestOwnersOfSeveralAddressesAreFoundOnce(t *testing.T) {
	svc, other := web(""), web("")
	svc.Endpoints = []Endpoint{endpoint("10.9.0.1", 80), endpoint("10.9.0.2", 80)}
	other.Endpoints = []Endpoint{endpoint("10.9.0.2", 80)}
	otherKey := key("other.ns.svc.cluster.local", "ns")
	pod := WorkloadKey{Namespace: "ns", Name: "pod"}
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{webKey: svc, otherKey: other}),
		workloads(shardOf("c1"), map[WorkloadKey]*Workload{pod: {Addresses: []netip.Addr{testAddress(1), testAddress(2)}}}))
	one, two := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.9.0.2")
	for _, at := range [][]netip.Addr{{one, two}, {two, one}, {one, two, one, two}} {
		if got := len(s.At(Place{Cluster: "c1", Addresses: at}).Instances()); got != 3 {
			t.Errorf("%d instances at %v, want 3", got, at)
		}
	}
	if got := len(s.At(Place{Cluster: "c1", Addresses: []netip.Addr{testAddress(1), testAddress(2)}}).Workloads()); got != 1 {
		t.Errorf("%d workloads, want one", got)
	}
}
