package federation

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

// The seeds of the External registry that are about the domain. What the hub's
// own objects say has one shard: that of the cluster "hub".

var hub = ShardKey{Cluster: "hub", Provider: External}

func entry(address string, labels ...string) *Workload {
	w := &Workload{Labels: map[string]string{}}
	if address != "" {
		w.Addresses = []netip.Addr{netip.MustParseAddr(address)}
	}
	for i := 0; i+1 < len(labels); i += 2 {
		w.Labels[labels[i]] = labels[i+1]
	}
	return w
}

func workloads(source ShardKey, set map[WorkloadKey]*Workload, gone ...WorkloadKey) Edit {
	return Edit{Source: source, Workloads: Delta[WorkloadKey, *Workload]{Set: set, Gone: gone}}
}

func we(name string) WorkloadKey { return WorkloadKey{Namespace: "shop", Name: name} }

// selecting is a service on port 80 whose endpoints are the workloads with these
// labels.
func selecting(labels ...string) *Shard {
	s := web("")
	s.Selector = &Selector{Labels: entry("", labels...).Labels}
	return s
}

// offered are the addresses of a service, whatever the port.
func offered(t *testing.T, s *Snapshot, k ServiceKey) []string {
	t.Helper()
	return addresses(mustService(t, s, k).Instances(80))
}

func wantOffered(t *testing.T, s *Snapshot, k ServiceKey, want ...string) {
	t.Helper()
	if got := offered(t, s, k); !slices.Equal(got, want) {
		t.Errorf("%s offers %v, want %v", k, got, want)
	}
}

// step applies the edit and checks for which services, with which reasons, it is
// a change.
func step(t *testing.T, s *Snapshot, e Edit, want ...ServiceChange) *Snapshot {
	t.Helper()
	next, c := Next(s, e)
	if len(c.Services)+len(want) > 0 && !reflect.DeepEqual(c.Services, want) {
		t.Errorf("changes are %v, want %v", c.Services, want)
	}
	return next
}

var webKey, otherKey = key("web.example", "shop"), key("other.example", "shop")

func TestSeed24ServiceEntriesOfOneHostAreNotMergedIntoClusterVIPs(t *testing.T) {
	there := key("web.example", "other")
	s := after(set(hub, map[ServiceKey]*Shard{webKey: web("240.0.0.1"), there: web("240.0.0.2")}))
	if s.Services().Len() != 2 {
		t.Fatalf("%d services, want one for each namespace", s.Services().Len())
	}
	for k, want := range map[ServiceKey]string{webKey: "240.0.0.1", there: "240.0.0.2"} {
		vips := mustService(t, s, k).ClusterVIPs
		if len(vips) != 1 || !slices.Equal(vips.Of("hub"), []netip.Prefix{vip(want)}) {
			t.Errorf("ClusterVIPs of %s are %v, want its own %s of the hub", k, vips, want)
		}
	}
}

// TestSeed41EndpointsGoWithTheSpecsOfOthers: one object with two hosts; the
// services of b and the endpoints of a change, and both are reported.
func TestSeed41EndpointsGoWithTheSpecsOfOthers(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.1", 80)), otherKey: web("", endpoint("10.1.0.1", 80))}))
	grown := web("", endpoint("10.1.0.2", 80))
	grown.Ports = append(grown.Ports, Port{Name: "grpc", Number: 90, Protocol: GRPC})
	s = step(t, s, set(hub, map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.2", 80)), otherKey: grown}),
		ServiceChange{Key: otherKey, Reasons: ReasonSpec | ReasonEndpoints}, ServiceChange{Key: webKey, Reasons: ReasonEndpoints})
	wantOffered(t, s, webKey, "10.1.0.2")
	wantOffered(t, s, otherKey, "10.1.0.2")
}

func TestSeed42WorkloadIsAnEndpointWhereItCarriesAllLabels(t *testing.T) {
	s := after(
		set(hub, map[ServiceKey]*Shard{
			webKey: selecting("app", "x"), otherKey: selecting("app", "x", "z", "1"),
			key("none.example", "shop"): selecting(),
		}),
		workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x", "v", "1")}))
	wantOffered(t, s, webKey, "10.2.0.1")
	wantOffered(t, s, otherKey)
	wantOffered(t, s, key("none.example", "shop"))
}

func TestSeed43WorkloadNeverJoinsAnotherNamespace(t *testing.T) {
	s := after(
		set(hub, map[ServiceKey]*Shard{
			key("web.example", "other"): selecting("app", "x"), key("web.example", "sho"): selecting("app", "x"),
			key("web.example", ""): selecting("app", "x"),
		}),
		workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")}))
	for svc := range s.Services().All() {
		wantOffered(t, s, svc.Key)
	}
}

func TestSeed44WorkloadWithoutSelectorsInItsNamespaceIsNoUpdate(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.1", 80)), key("web.example", "other"): selecting("app", "x")}))
	next, c := Next(s, workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")}))
	at := AddressKey{Network: DefaultNetwork, Addr: netip.MustParseAddr("10.2.0.1")}
	if len(c.Services) != 0 || c.Reasons() != 0 || !slices.Equal(c.Addresses, []AddressKey{at}) {
		t.Errorf("changes are %+v, want its address alone", c)
	}
	if got, _ := next.Service(webKey); got != mustService(t, s, webKey) {
		t.Error("a service was recomputed")
	}
}

func TestSeed45LastWorkloadDeletedLeavesAnEmptyList(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}),
		workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")}))
	s = step(t, s, workloads(hub, nil, we("vm")), ServiceChange{Key: webKey, Reasons: ReasonEndpoints})
	wantOffered(t, s, webKey)
}

func TestSeed46OneOfTwoDeletedLeavesTheOtherComplete(t *testing.T) {
	stays := entry("10.2.0.2", "app", "x", "v", "2")
	stays.Weight, stays.ServiceAccount, stays.Locality = 7, "shop/vm", Locality{Region: "eu"}
	s := after(set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}),
		workloads(hub, map[WorkloadKey]*Workload{we("one"): entry("10.2.0.1", "app", "x"), we("two"): stays}))
	s = step(t, s, workloads(hub, nil, we("one")), ServiceChange{Key: webKey, Reasons: ReasonEndpoints})
	want := Endpoint{
		Address: IPAddress(stays.Addresses[0]), Ports: []EndpointPort{{Name: "http", Number: 80}},
		Network: DefaultNetwork, Locality: stays.Locality,
		Weight: 7, Health: Healthy, Labels: stays.Labels, ServiceAccount: "shop/vm", Workload: "shop/two",
	}
	if got := mustService(t, s, webKey).Endpoints[0].Endpoints; len(got) != 1 || !got[0].Equal(&want) {
		t.Errorf("endpoints are %+v, want %+v", got, want)
	}
}

func TestSeed47WorkloadOfTwoServicesDeletedEmptiesTheOneThatHadNoOther(t *testing.T) {
	s := after(
		set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x"), otherKey: selecting("v", "1")}),
		workloads(hub, map[WorkloadKey]*Workload{we("one"): entry("10.2.0.1", "app", "x", "v", "1"), we("two"): entry("10.2.0.2", "app", "x")}))
	wantOffered(t, s, otherKey, "10.2.0.1")
	s = step(t, s, workloads(hub, nil, we("one")), ServiceChange{Key: otherKey, Reasons: ReasonEndpoints},
		ServiceChange{Key: webKey, Reasons: ReasonEndpoints})
	wantOffered(t, s, webKey, "10.2.0.2")
	wantOffered(t, s, otherKey)
}

func TestSeed48RelabelledWorkloadGoes(t *testing.T) {
	s := after(
		set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x"), otherKey: selecting("app", "y")}),
		workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")}))
	s = step(t, s, workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "y")}),
		ServiceChange{Key: otherKey, Reasons: ReasonEndpoints}, ServiceChange{Key: webKey, Reasons: ReasonEndpoints})
	wantOffered(t, s, webKey)
	wantOffered(t, s, otherKey, "10.2.0.1")
}

func TestSeed49OrderOfEntriesDoesNotShow(t *testing.T) {
	service := set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")})
	vm := workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")})
	pod := workloads(shardOf("c1"), map[WorkloadKey]*Workload{we("pod"): entry("10.1.0.1", "app", "x")})
	want := viewOf(after(service, vm, pod))
	for _, edits := range [][]Edit{{vm, service, pod}, {vm, pod, service}, {pod, service, vm}} {
		s := after(edits...)
		wantOffered(t, s, webKey, "10.1.0.1", "10.2.0.1")
		if d := differ(want, viewOf(s)); d != "" {
			t.Errorf("another order gives another snapshot:\n%s", d)
		}
	}
}

func TestSeed50UpdateThatChangesNothingIsNone(t *testing.T) {
	vm := func() Edit {
		return workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")})
	}
	service := func() Edit { return set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}) }
	s := after(service(), vm())
	for _, e := range []Edit{service(), vm(), workloads(hub, nil, we("nobody"))} {
		if next, c := Next(s, e); next != s || !c.Empty() {
			t.Errorf("%+v made %+v", e, c)
		}
	}
	probed := entry("10.2.0.1", "app", "x")
	probed.Probes = []Probe{{Kind: "readiness", Port: 1}}
	step(t, s, workloads(hub, map[WorkloadKey]*Workload{we("vm"): probed}))
}

// TestSeed51EndpointsAreCurrentWhenTheSpecIsTold: there is one version, so that
// a reader that sees the spec finds the endpoints that belong to it.
func TestSeed51EndpointsAreCurrentWhenTheSpecIsTold(t *testing.T) {
	a := NewAggregate(nil)
	w := a.Open(hub)
	w.Update(workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x"), we("new"): entry("10.2.0.2", "app", "y")}))
	w.Update(set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}))
	before := a.Latest()
	changed := selecting("app", "y")
	changed.Ports = []Port{{Name: "http", Number: 80, Protocol: HTTP2}}
	w.Update(set(hub, map[ServiceKey]*Shard{webKey: changed}))
	<-before.Superseded()
	c := a.Latest().ChangesSince(before.Version())
	if a.Latest().Version() != before.Version()+1 || c.Reasons() != ReasonSpec|ReasonEndpoints {
		t.Errorf("version %d after %d, reasons %s: want one version with both", a.Latest().Version(), before.Version(), c.Reasons())
	}
	wantOffered(t, a.Latest(), webKey, "10.2.0.2")
}

func TestSeed53AllThatAWorkloadSaysArrives(t *testing.T) {
	vm := entry("10.2.0.1", "app", "x")
	vm.Network, vm.Locality, vm.Weight = "n2", Locality{Region: "eu", Zone: "eu-1", SubZone: "r1"}, 5
	vm.TLSMode, vm.ServiceAccount, vm.Health = "istio", "shop/vm", Draining
	vm.Ports = []EndpointPort{{Name: "http", Number: 8080}}
	s := after(set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}))
	next, c := Next(s, workloads(hub, map[WorkloadKey]*Workload{we("vm"): vm}))
	if c.Reasons() != ReasonEndpoints|ReasonAccounts {
		t.Errorf("reasons are %s", c.Reasons())
	}
	want := Endpoint{
		Address: IPAddress(vm.Addresses[0]), Ports: vm.Ports, Network: "n2", Locality: vm.Locality, Weight: 5, Health: Draining,
		Labels: vm.Labels, ServiceAccount: "shop/vm", TLSMode: "istio", Workload: "shop/vm",
	}
	if got := mustService(t, next, webKey).Instances(80); len(got) != 1 || !got[0].Endpoint.Equal(&want) {
		t.Errorf("instances are %+v, want %+v", got, want)
	}
	if got := mustService(t, next, webKey).ServiceAccounts; !slices.Equal(got, []string{"shop/vm"}) {
		t.Errorf("accounts are %v", got)
	}
}
