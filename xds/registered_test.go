package xds

import (
	"net/netip"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/xdstest"
)

// endpointsOf are the addresses in the one assignment of a response.
func endpointsOf(t *testing.T, r xdstest.Response) (all []string) {
	t.Helper()
	for _, packed := range r.Resources {
		var a endpointv3.ClusterLoadAssignment
		if err := packed.UnmarshalTo(&a); err != nil {
			t.Fatal(err)
		}
		for _, group := range a.GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				all = append(all, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
		}
	}
	return all
}

// TestS19StreamsFollowTheRegistry: a proxy that says that it is in another network
// is sent there only until a registry knows its workload.
func TestS19StreamsFollowTheRegistry(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		h := newHub(t)
		key := federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.NetworkKind.Name, Name: "n2"}
		e := federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{
			Set: map[federation.ClusterID]federation.ClusterSpec{"c1": {Provider: federation.Mock, Network: "n1"}},
		}}
		e.Objects.Set = map[federation.ObjectKey]*federation.Object{key: {Key: key, Spec: &federation.NetworkObject{
			Gateways: []federation.NetworkGateway{{Address: "192.0.2.1"}},
		}}}
		h.aggregate.Open(federation.ShardKey{Provider: federation.Operator}).Update(e)
		far := service("web", 1)
		for _, shard := range far.Set {
			shard.Endpoints[0].Network = "n2"
		}
		h.set(far)
		liar := node("web-1")
		liar.Metadata.Fields["NETWORK"] = structpb.NewStringValue("n2")
		c := h.client(xdstest.Options{Delta: delta, Node: liar})
		if got := endpointsOf(t, c.get(xdstest.Request{Type: xdstest.EDS, Names: []string{cluster("web")}})); len(got) != 1 {
			t.Fatalf("before a registry knows it, it is sent to %v", got)
		}
		known := federation.Edit{}
		known.Workloads.Set = map[federation.WorkloadKey]*federation.Workload{{Namespace: "shop", Name: "web-1"}: {
			Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.9")}, Network: "n1",
		}}
		h.writer.Update(known)
		if got := endpointsOf(t, c.accept(xdstest.EDS)); len(got) != 0 {
			t.Errorf("in n1, without an identity, it is sent to %v", got)
		}
	})
}

// TestS22RoutersThatServeNothingAreCounted.
func TestS22RoutersThatServeNothingAreCounted(t *testing.T) {
	counts := &eventCounts{events: map[Event]int{}}
	h := newHub(t, func(o *Options) { o.Metrics = counts })
	h.set(service("web", 1))
	claims := router()
	claims.Metadata.Fields["ROUTER_MODE"] = structpb.NewStringValue("sni-dnat")
	c := h.client(xdstest.Options{Delta: true, Node: claims})
	wantNames(t, c.get(xdstest.Request{Type: xdstest.CDS}), cluster("web"))
	if n := counts.of(NotServing); n != 1 {
		t.Errorf("%d are counted", n)
	}
}
