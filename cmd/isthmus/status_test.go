package main

import (
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

type noReasons struct{}

func (noReasons) Reasons(federation.ObjectKey) []envoy.Reason         { return nil }
func (noReasons) ServiceReasons(federation.ServiceKey) []envoy.Reason { return nil }

// TestR43NotHonouredIsThatOfTheSnapshot: what the mesh says of an object later is not
// in the answer of an operation that began before.
func TestR43NotHonouredIsThatOfTheSnapshot(t *testing.T) {
	mesh := federation.NewAggregate(nil)
	writer := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	object := &federation.Object{Key: federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: "web"}, Spec: &networking.ServiceEntry{}}
	before := mesh.Latest()
	writer.Update(federation.Edit{Problems: federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{
		"web": {Code: notHonoured, Object: object.Key.Title(), Field: "spec.ports", Message: "it has no effect"},
	}}})
	status := statusOf{"hub", noReasons{}}
	if found := status.notHonoured(before, object); len(found) != 0 {
		t.Errorf("before the change it is %+v", found)
	}
	if found := status.notHonoured(mesh.Latest(), object); len(found) != 1 {
		t.Errorf("after the change it is %+v", found)
	}
}

func (noReasons) Object(*fleet.Value, federation.ObjectKey) fleet.Affected { return fleet.Affected{} }
