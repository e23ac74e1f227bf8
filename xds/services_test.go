package xds

import (
	"net/netip"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/xdstest"
)

const istioNetworking = "networking.istio.io"

// TestR36StatusOfEntriesCountsProxies: a ServiceEntry counts the proxies that were
// sent its services, a WorkloadEntry those that were sent a service that selects it.
func TestR36StatusOfEntriesCountsProxies(t *testing.T) {
	h := newHub(t)
	entries := h.aggregate.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	entry := &federation.Object{
		Key:   federation.ObjectKey{Group: istioNetworking, Kind: "ServiceEntry", Namespace: "shop", Name: "pay"},
		Names: []string{"pay.example.com", "other.example.com"}, Digest: "1",
	}
	vm := &federation.Object{
		Key:    federation.ObjectKey{Group: istioNetworking, Kind: "WorkloadEntry", Namespace: "shop", Name: "vm"},
		Digest: "1",
	}
	idle := &federation.Object{
		Key:    federation.ObjectKey{Group: istioNetworking, Kind: "WorkloadEntry", Namespace: "shop", Name: "idle"},
		Digest: "1",
	}
	shard := &federation.Shard{
		Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}, ExportTo: []string{"."}, MeshExternal: true,
		Selector: &federation.Selector{Labels: map[string]string{"app": "pay"}},
	}
	machine := func(app string, n byte) *federation.Workload {
		return &federation.Workload{
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})}, Labels: map[string]string{"app": app},
			Health: federation.Healthy,
		}
	}
	pay := federation.ServiceKey{Hostname: "pay.example.com", Namespace: "shop"}
	objects := map[federation.ObjectKey]*federation.Object{}
	for _, o := range []*federation.Object{entry, vm, idle} {
		objects[o.Key] = o
	}
	entries.Update(federation.Edit{
		Services: serviceDelta{Set: map[federation.ServiceKey]*federation.Shard{pay: shard}},
		Workloads: federation.Delta[federation.WorkloadKey,
			*federation.Workload]{Set: map[federation.WorkloadKey]*federation.Workload{
			{Namespace: "shop", Name: "vm"}:   machine("pay", 1),
			{Namespace: "shop", Name: "idle"}: machine("idle", 2),
		}},
		Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: objects},
	})

	near := h.client(xdstest.Options{Delta: true, Node: node("web-1")})
	near.get(xdstest.Request{Type: xdstest.CDS})
	near.get(xdstest.Request{Type: xdstest.EDS, Names: []string{"outbound|80||pay.example.com"}})
	other := node("web-2") // sees nothing of the namespace
	other.Id = "sidecar~10.1.0.8~web-2.bank~bank.svc.cluster.local"
	delete(other.Metadata.Fields, "NAMESPACE")
	far := h.client(xdstest.Options{Delta: true, Node: other})
	far.get(xdstest.Request{Type: xdstest.CDS})

	of := func(o *federation.Object) progress { return h.objectProgress(o.Key) }
	for name, o := range map[string]*federation.Object{"the entry": entry, "the workload": vm} {
		if got := h.becomes(name, of(o), fleet.Accepted); got.NodeID != node("web-1").Id {
			t.Errorf("%s is with %s", name, got.NodeID)
		}
	}
	h.when("no service selects the other workload", func(v *fleet.Value) bool { return v.Count() == 2 && len(of(idle)(v)) == 0 })

	moved := *vm
	moved.Digest = "2"
	entries.Update(federation.Edit{
		Workloads: federation.Delta[federation.WorkloadKey,
			*federation.Workload]{Set: map[federation.WorkloadKey]*federation.Workload{{Namespace: "shop", Name: "vm"}: machine("pay", 9)}},
		Objects: federation.Delta[federation.ObjectKey, *federation.Object]{Set: map[federation.ObjectKey]*federation.Object{vm.Key: &moved}},
	})
	r := near.next(xdstest.EDS)
	h.becomes("the new address is sent", of(vm), fleet.Delivered)
	near.nack(r, "no such address")
	h.becomes("the new address is refused", of(vm), fleet.Rejected)
	h.becomes("the clusters are as they were, and the endpoints of the entry are refused", of(entry), fleet.Rejected)
}
