package status

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/xds/envoy"
)

type noReasons struct{}

func (noReasons) Reasons(federation.ObjectKey) []envoy.Reason { return nil }

func (noReasons) ServiceReasons(federation.ServiceKey) []envoy.Reason { return nil }

// TestR43NotHonouredIsThatOfTheSnapshot: what the mesh reports about an object later is not
// in the answer of an operation that began before.
func TestR43NotHonouredIsThatOfTheSnapshot(t *testing.T) {
	mesh := federation.NewAggregate(nil)
	writer := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	object := &federation.Object{
		Key:  federation.ObjectKey{Group: "networking.istio.io", Kind: "ServiceEntry", Namespace: "shop", Name: "web"},
		Spec: &networking.ServiceEntry{},
	}
	before := mesh.Latest()
	writer.Update(federation.Edit{Problems: federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{
		"web": {Code: federation.CodeNotHonoured, Object: object.Key.Title(), Field: "spec.ports", Message: "it has no effect"},
	}}})
	status := &Objects{Hub: "hub", Proxies: noReasons{}}
	if found := status.NotHonoured(before, object); len(found) != 0 {
		t.Errorf("before the change it is %+v", found)
	}
	if found := status.NotHonoured(mesh.Latest(), object); len(found) != 1 {
		t.Errorf("after the change it is %+v", found)
	}
}

// TestProblemsOfServicesOfAnEntryAreItsFindings: a ServiceEntry whose service cannot be used says so, at its own field.
func TestProblemsOfServicesOfAnEntryAreItsFindings(t *testing.T) {
	mesh := federation.NewAggregate(nil)
	writer := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	key := federation.ServiceEntryKind.Key("shop", "web")
	of := federation.ServiceKey{Hostname: "web.example.", Namespace: "shop"}
	e := federation.Edit{}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{
		key: {Key: key, Names: []string{string(of.Hostname)}, Digest: "1", Spec: &networking.ServiceEntry{
			Hosts: []string{string(of.Hostname)}, Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		}},
	}
	e.Services.Set = map[federation.ServiceKey]*federation.Shard{of: {Ports: []federation.Port{{Number: 80}}}}
	writer.Update(e)
	status := &Objects{Hub: "hub", Proxies: noReasons{}}
	found := status.Findings(mesh.Latest(), fleet.New().Latest(), key)
	if len(found) != 1 || found[0].Code != "INVALID_HOSTNAME" || found[0].Field != "spec.hosts" || !strings.Contains(found[0].Message, "ends with a dot") {
		t.Errorf("the findings are %+v", found)
	}
}

// TestAnotherTrustDomainIsAFindingOfMeshSettings, if the hub signs certificates for another one.
func TestAnotherTrustDomainIsAFindingOfMeshSettings(t *testing.T) {
	mesh := federation.NewAggregate(nil)
	writer := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	e := federation.Edit{}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{federation.MeshSettingsKey: {
		Key: federation.MeshSettingsKey, Digest: "1", Spec: &federation.MeshSettings{TrustDomain: "mesh.example"},
	}}
	writer.Update(e)
	for signs, want := range map[string]int{"": 0, "mesh.example": 0, "cluster.local": 1} {
		status := &Objects{Hub: "hub", Signs: signs, Proxies: noReasons{}}
		found := status.Findings(mesh.Latest(), fleet.New().Latest(), federation.MeshSettingsKey)
		if len(found) != want || want > 0 && (found[0].Field != "spec.trustDomain" || !strings.Contains(found[0].Message, `"cluster.local"`)) {
			t.Errorf("a hub that signs for %q has the findings %+v", signs, found)
		}
	}
}

// TestARejectedFileIsTheFieldThatNamesIt, although the name of the cluster repeats the host.
func TestARejectedFileIsTheFieldThatNamesIt(t *testing.T) {
	mesh := federation.NewAggregate(nil)
	writer := mesh.Open(federation.ShardKey{Cluster: "hub", Provider: federation.External})
	rule := federation.DestinationRuleKind.Key("shop", "web")
	e := federation.Edit{}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{rule: {Key: rule, Digest: "1", Spec: &networking.DestinationRule{
		Host: "web.shop.svc.cluster.local", TrafficPolicy: &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{CaCertificates: "/etc/ca.pem"}},
	}}}
	writer.Update(e)
	for text, want := range map[string]string{
		"outbound|80||web.shop.svc.cluster.local: Invalid path: /etc/ca.pem": "spec.trafficPolicy.tls.caCertificates",
		"outbound|80||web.shop.svc.cluster.local: no such cipher":            "spec.host",
	} {
		if field := fieldSaid(mesh.Latest().Read(), rule, text); field != want {
			t.Errorf("of %q the field is %q", text, field)
		}
	}
}

func (noReasons) Object(*federation.Snapshot, *fleet.Value, federation.ObjectKey) fleet.Affected {
	return fleet.Affected{}
}

// askedForObjects counts the questions about which proxies have what of an object.
type askedForObjects struct {
	noReasons
	asked *int
}

func (a askedForObjects) Object(*federation.Snapshot, *fleet.Value, federation.ObjectKey) fleet.Affected {
	*a.asked++
	return fleet.Affected{}
}

// TestR42FindingsDoNotCountProxies: as long as no proxy refuses anything, the findings of
// an object do not depend on which proxies have it.
func TestR42FindingsDoNotCountProxies(t *testing.T) {
	asked, proxies := 0, fleet.New()
	const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	status := &Objects{Hub: "hub", Proxies: askedForObjects{asked: &asked}}
	key := federation.ObjectKey{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: "web"}
	stream := proxies.Connect(fleet.Proxy{NodeID: "a", Served: true})
	stream.Deliver(1, map[string]*fleet.Delivery{clusterType: {
		Groups: []fleet.Group{1},
		Open:   []fleet.OpenResource{{Number: 1, State: fleet.Waiting}},
	}})
	status.Findings(federation.Empty(), proxies.Latest(), key)
	if asked != 0 {
		t.Errorf("without a refusal the proxies of the object were asked for %d times", asked)
	}
	stream.Deliver(1, map[string]*fleet.Delivery{clusterType: {
		Groups: []fleet.Group{1},
		Open:   []fleet.OpenResource{{Number: 1, State: fleet.Accepted, Refused: true}},
	}})
	status.Findings(federation.Empty(), proxies.Latest(), key)
	if asked != 1 {
		t.Errorf("with a refusal the proxies of the object were asked for %d times", asked)
	}
}

// snapshotsAsked notes of which snapshots it is asked.
type snapshotsAsked struct {
	noReasons
	of *[]*federation.Snapshot
}

func (a snapshotsAsked) Object(of *federation.Snapshot, _ *fleet.Value, _ federation.ObjectKey) fleet.Affected {
	*a.of = append(*a.of, of)
	return fleet.Affected{}
}

// TestR43ProxiesAreThoseOfTheSnapshot: which proxies have an object is answered for the snapshot of
// the operation, not for one that is published meanwhile.
func TestR43ProxiesAreThoseOfTheSnapshot(t *testing.T) {
	proxies, of := fleet.New(), federation.Empty()
	proxies.Connect(fleet.Proxy{NodeID: "a"}).Deliver(1, map[string]*fleet.Delivery{"type": {
		Groups: []fleet.Group{1}, Open: []fleet.OpenResource{{Number: 1, State: fleet.Accepted, Refused: true}},
	}})
	var asked []*federation.Snapshot
	w := Written{Objects: &Objects{Hub: "hub", Proxies: snapshotsAsked{of: &asked}}, Fleet: proxies}
	key := federation.ObjectKey{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: "web"}
	w.Objects.Findings(of, proxies.Latest(), key)
	w.Findings(of, of.Read(), key)
	w.Delivered(of, key)
	if len(asked) != 3 || asked[0] != of || asked[1] != of || asked[2] != of {
		t.Errorf("proxies were asked for of the snapshots %p, want of %p alone", asked, of)
	}
}
