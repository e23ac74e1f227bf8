package status

import (
	"testing"
	"testing/synctest"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph/model"
)

// TestNoProxiesAreCountedForWhatTheyDoNotHave: a kind that acts through derived objects, or selects
// alone, has no count, instead of one that is always zero.
func TestNoProxiesAreCountedForWhatTheyDoNotHave(t *testing.T) {
	kinds := []federation.Kind{federation.ClusterKind, federation.NetworkKind}
	for _, name := range []string{
		"Gateway", "GatewayClass", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute",
		"ReferenceGrant", "BackendTLSPolicy",
	} {
		kinds = append(kinds, federation.Kind{Group: "gateway.networking.k8s.io", Name: name})
	}
	for _, k := range kinds {
		if got, counted := (Delivery{}).Delivery(nil, nil, federation.ObjectKey{Group: k.Group, Kind: k.Name, Name: "web"}); counted {
			t.Errorf("%s: %+v", k, got)
		}
	}
}

// TestR42RolloutsChangeWhenProxiesAnswer, and at no other time: a reader that waits
// for one is woken by the fleet, not by a clock.
func TestR42RolloutsChangeWhenProxiesAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Delivery{Fleet: fleet.New()}
		const clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
		sent := func(of fleet.Sync) map[string]*fleet.Delivery {
			return map[string]*fleet.Delivery{clusters: {Sync: of, InFlight: of.SnapshotSent - of.SnapshotAcked}}
		}
		stream := d.Fleet.Connect(fleet.Proxy{Cluster: "east", NodeID: "web-1"})
		other := d.Fleet.Connect(fleet.Proxy{Cluster: "west", NodeID: "web-1"})
		other.Deliver(2, sent(fleet.Sync{VersionSent: "b", SnapshotSent: 2, SnapshotAcked: 2}))
		stream.Deliver(2, sent(fleet.Sync{VersionSent: "b", SnapshotSent: 2}))
		before, changed := d.Rollout(1, 2)
		<-time.NewTimer(time.Hour).C // in fake time
		select {
		case <-changed:
			t.Fatal("the rollout changed although no proxy answered")
		default:
		}
		stream.Deliver(2, sent(fleet.Sync{VersionSent: "b", VersionAcked: "b", SnapshotSent: 2, SnapshotAcked: 2}))
		<-changed
		after, _ := d.Rollout(1, 2)
		if len(before) != 2 || before[0].Cluster != "east" || before[0].State != model.RolloutStateDelivered ||
			before[1].State != model.RolloutStateAcked {
			t.Errorf("before: %+v", before)
		}
		if len(after) != 2 || after[0].State != model.RolloutStateAcked {
			t.Errorf("after: %+v", after)
		}
	})
}
