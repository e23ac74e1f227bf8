package fleet_test

import (
	"reflect"
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
)

// TestR36ProxiesOfTwoClustersWithOneNodeID are two proxies: in a rollout, in the status
// of an object, and where one of them is looked for. Two streams of one are one.
func TestR36ProxiesOfTwoClustersWithOneNodeID(t *testing.T) {
	f := fleet.New()
	const group fleet.Group = 7
	for _, step := range []struct {
		cluster federation.ClusterID
		acked   uint64
	}{{"west", 2}, {"east", 2}, {"east", 0}} {
		d := &fleet.Delivery{
			Sync:   fleet.Sync{VersionSent: "b", SnapshotSent: 2, SnapshotAcked: step.acked},
			Groups: []fleet.Group{group}, Wildcard: true,
		}
		if step.acked == 0 {
			d.InFlight, d.Open = 2, []fleet.OpenResource{{Number: 3, State: fleet.Delivered}}
		}
		f.Connect(fleet.Proxy{Cluster: step.cluster, NodeID: "web-1"}).Deliver(2, map[string]*fleet.Delivery{cds: d})
	}
	now := f.Latest()
	want := []fleet.Progress{
		{ProxyID: fleet.ProxyID{Cluster: "east", NodeID: "web-1"}, State: fleet.Delivered},
		{ProxyID: fleet.ProxyID{Cluster: "west", NodeID: "web-1"}, State: fleet.Accepted},
	}
	if got := now.Rollout(2); !reflect.DeepEqual(got, want) {
		t.Errorf("the rollout is %+v", got)
	}
	a := now.Affected(fleet.Question{Built: []fleet.Built{{Group: group, Numbers: []uint32{3}}}, Changed: func(uint64) bool { return false }})
	if got := slices.Collect(a.Proxies()); !reflect.DeepEqual(got, want) || a.Accepted != 1 || a.Delivered != 1 {
		t.Errorf("the object is with %+v", got)
	}
	if p := now.ByProxy(want[1].ProxyID); p == nil || p.Cluster != "west" {
		t.Errorf("the proxy of west is %+v", p)
	}
}
