package model_test

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph/model"
)

func drawAddress(t *rapid.T) federation.Address {
	switch rapid.IntRange(0, 3).Draw(t, "sort") {
	case 0:
		return federation.IPAddress(netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.SampledFrom([]byte{1, 2, 200}), 4, 4).Draw(t, "v4"))))
	case 1:
		pair := rapid.SliceOfN(rapid.SampledFrom([]byte{0x20, 0x26, 0xfd}), 2, 2).Draw(t, "v6")
		return federation.IPAddress(netip.AddrFrom16([16]byte{pair[0], pair[1], 15: 1}))
	case 2:
		return federation.HostAddress(rapid.SampledFrom([]string{"a", "a.example", "a-b.example", "b"}).Draw(t, "host"))
	default:
		return federation.UnixAddress(rapid.SampledFrom([]string{"/run/a", "/run/a.sock"}).Draw(t, "path"))
	}
}

func drawEndpoint(t *rapid.T) federation.Endpoint {
	made := federation.Endpoint{
		Address: drawAddress(t), Network: federation.NetworkID(rapid.SampledFrom([]string{"", "n1", "n10"}).Draw(t, "network")),
		Weight: uint32(rapid.IntRange(0, 3).Draw(t, "weight")),
	}
	for range rapid.IntRange(0, 3).Draw(t, "ports") {
		made.Ports = append(made.Ports, federation.EndpointPort{
			Name:   rapid.SampledFrom([]string{"", "http", "http-2"}).Draw(t, "name"),
			Number: uint16(rapid.SampledFrom([]int{80, 255, 256, 8080}).Draw(t, "number")),
		})
	}
	return made
}

// TestPropertyEndpointsAreInTheOrderOfTheirKeys: else pages would miss some.
func TestPropertyEndpointsAreInTheOrderOfTheirKeys(t *testing.T) {
	key := federation.ServiceKey{Hostname: "a.b", Namespace: "b"}
	rapid.Check(t, func(t *rapid.T) {
		snapshot := federation.Empty()
		for _, id := range []federation.ClusterID{"c1", "c10", "c2"} {
			spec := federation.ClusterSpec{Provider: federation.Kubernetes, Precedence: rapid.IntRange(1, 3).Draw(t, "precedence")}
			snapshot, _ = federation.Next(snapshot, federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
				Set: map[federation.ClusterID]federation.ClusterSpec{id: spec},
			}})
			shard := &federation.Shard{Endpoints: rapid.SliceOfN(rapid.Custom(drawEndpoint), 1, 12).Draw(t, "endpoints")}
			snapshot, _ = federation.Next(snapshot, federation.Edit{
				Source:   federation.ShardKey{Cluster: id, Provider: federation.Kubernetes},
				Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Set: map[federation.ServiceKey]*federation.Shard{key: shard}},
			})
		}
		of, ok := snapshot.Service(key)
		if !ok {
			t.Fatal("the service is missing")
		}
		var keys []string
		for endpoint := range (model.Service{From: snapshot, Of: of}).Endpoints {
			keys = append(keys, endpoint.Key())
			if model.ServiceKey(endpoint.WideKey()) != key {
				t.Fatalf("%q is of the service %v", endpoint.WideKey(), model.ServiceKey(endpoint.WideKey()))
			}
		}
		if len(keys) != of.CountEndpoints() || !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
			t.Fatalf("%d endpoints have the keys %q", of.CountEndpoints(), keys)
		}
	})
}
