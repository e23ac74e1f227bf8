package federation

import (
	"net/netip"
	"testing"
)

// A workload may be the only one that names its network.
func TestRegisteredInANetworkThatNobodyElseNames(t *testing.T) {
	at := []netip.Addr{testAddress(7)}
	named, other := WorkloadKey{Namespace: "ns", Name: "vm"}, WorkloadKey{Namespace: "ns", Name: "renamed"}
	s := after(Edit{Source: shardOf("c1"), Workloads: Delta[WorkloadKey,
		*Workload]{Set: map[WorkloadKey]*Workload{named: {Addresses: at, Network: "n1"}}}})
	for _, name := range []WorkloadKey{named, other} {
		found, ok := s.At(Place{Cluster: "c1", Addresses: at}).Registered(name)
		if !ok || found.Network != "n1" {
			t.Errorf("asked for %s: found %v in network %q", name, ok, found.Network)
		}
	}
}
