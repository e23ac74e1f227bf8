package federation

import (
	"net/netip"
	"slices"
	"testing"
)

func TestWhereASelectedWorkloadListens(t *testing.T) {
	socket, named, own := entry("10.2.0.1", "app", "x"), entry("", "app", "x"), entry("10.2.0.3", "app", "x")
	target, silent := entry("10.2.0.4", "app", "x"), entry("10.2.0.5", "app", "x")
	socket.Host, named.Host = UnixAddress("/run/x"), HostAddress("vm.example")
	own.Ports = []EndpointPort{{Name: "http", Number: 1}, {Name: "dns", Number: 2}, {Name: "admin", Number: 3}}
	target.Ports = []EndpointPort{{Name: "web", Number: 4}}
	shard := &Shard{
		Ports: []Port{
			{Name: "http", Number: 80, Protocol: HTTP},
			{Name: "grpc", Number: 90, Protocol: GRPC},
			{Name: "dns", Number: 53, Protocol: UDP},
			{Name: "admin", Number: 91},
		},
		Selector: &Selector{
			Labels: map[string]string{"app": "x"}, TargetPorts: map[string]uint16{"grpc": 9090},
			TargetNames: map[string]string{"http": "web", "admin": "nobody"},
		},
	}
	s := after(set(hub, map[ServiceKey]*Shard{webKey: shard}), workloads(hub, map[WorkloadKey]*Workload{
		we("socket"): socket, we("named"): named, we("own"): own, we("target"): target, we("silent"): silent,
		we("nowhere"): entry("", "app", "x"),
	}))
	got := map[string][]EndpointPort{}
	for _, e := range mustService(t, s, webKey).Endpoints[0].Endpoints {
		got[e.Workload] = e.Ports
	}
	rest := []EndpointPort{{Name: "grpc", Number: 9090}, {Name: "dns", Number: 53}}
	for workload, want := range map[string][]EndpointPort{
		"shop/socket": rest, "shop/named": rest, "shop/silent": rest,
		"shop/own":    {{Name: "http", Number: 1}, {Name: "admin", Number: 3}, {Name: "grpc", Number: 9090}, {Name: "dns", Number: 2}},
		"shop/target": {{Name: "http", Number: 4}, {Name: "grpc", Number: 9090}, {Name: "dns", Number: 53}},
	} {
		ports, ok := got[workload]
		if byName := slices.SortedFunc(slices.Values(ports), comparePortNames); !ok ||
			!slices.Equal(byName, slices.SortedFunc(slices.Values(want), comparePortNames)) {
			t.Errorf("%s listens at %v, want %v", workload, ports, want)
		}
	}
	if len(got) != 5 {
		t.Errorf("endpoints are %v: a workload without an address is none", got)
	}
}

func comparePortNames(a, b EndpointPort) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}

func TestSelectorLooksAtItsProvidersOnly(t *testing.T) {
	external := selecting("app", "x")
	external.Selector.Providers = []Provider{External}
	s := after(
		set(shardOf("c1"), map[ServiceKey]*Shard{webKey: external}), set(hub, map[ServiceKey]*Shard{otherKey: selecting("app", "x")}),
		workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")}))
	s = step(t, s, workloads(shardOf("c2"), map[WorkloadKey]*Workload{we("pod"): entry("10.1.0.1", "app", "x")}),
		ServiceChange{Key: otherKey, Reasons: ReasonEndpoints})
	wantOffered(t, s, webKey, "10.2.0.1")
	wantOffered(t, s, otherKey, "10.1.0.1", "10.2.0.1")
}

// TestWorkloadOfSeveralShardsIsOneEndpoint: the first in precedence has it, and
// what a registry declares stays as it was declared.
func TestWorkloadOfSeveralShardsIsOneEndpoint(t *testing.T) {
	declared := endpoint("10.2.0.2", 80, "by", "slice")
	one, two := selecting("app", "x"), selecting("app", "x")
	two.Endpoints = []Endpoint{declared}
	s := after(
		set(shardOf("c1"), map[ServiceKey]*Shard{webKey: one}), set(shardOf("c2"), map[ServiceKey]*Shard{webKey: two}),
		workloads(hub, map[WorkloadKey]*Workload{we("a"): entry("10.2.0.1", "app", "x"), we("b"): entry("10.2.0.2", "app", "x")}))
	wantOffered(t, s, webKey, "10.2.0.1", "10.2.0.2")
	for _, i := range mustService(t, s, webKey).Instances(80) {
		switch i.Endpoint.Address.String() {
		case "10.2.0.1":
			if i.Shard != shardOf("c1") || i.Cluster() != "hub" {
				t.Errorf("the workload is an endpoint of %s in %s, want c1 and hub", i.Shard, i.Cluster())
			}
		case "10.2.0.2":
			if i.Shard != shardOf("c2") || i.Cluster() != "c2" || i.Endpoint.Labels["by"] != "slice" {
				t.Errorf("the declared endpoint became %+v", i.Endpoint)
			}
		}
	}
	s, _ = Next(s, Edit{Clusters: Delta[ClusterID, ClusterSpec]{Set: map[ClusterID]ClusterSpec{"c2": {Provider: Kubernetes, Precedence: 1}}}})
	if got := mustService(t, s, webKey).Instances(80); len(got) != 2 || got[0].Shard != shardOf("c2") || got[1].Shard != shardOf("c2") {
		t.Errorf("with c2 first the endpoints are %+v, want both of c2", got)
	}
}

// TestPlaceFindsWhatRunsThere: an endpoint belongs to the cluster that it runs
// in, whichever shard has it.
func TestPlaceFindsWhatRunsThere(t *testing.T) {
	s := after(
		set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}),
		workloads(shardOf("c1"), map[WorkloadKey]*Workload{we("pod"): entry("10.1.0.1", "app", "x")}))
	for cluster, want := range map[ClusterID]int{"c1": 1, "": 1, "hub": 0, "c2": 0} {
		place := Place{Cluster: cluster, Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.1")}}
		if got := s.At(place).Instances(); len(got) != want {
			t.Errorf("in cluster %q there are %d instances, want %d", cluster, len(got), want)
		}
		if got := s.Read().At(place).Instances(); len(got) != want {
			t.Errorf("in cluster %q a reader finds %d instances, want %d", cluster, len(got), want)
		}
	}
	group := mustService(t, s, webKey).Endpoints[0]
	if at := group.ClusterOf(&group.Endpoints[0]); at != "c1" {
		t.Errorf("the endpoint runs in %s", at)
	}
}

func TestDetachedClusterLeavesTheSelectionsOfOthers(t *testing.T) {
	s := after(
		set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}),
		workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("10.2.0.1", "app", "x")}),
		workloads(shardOf("c1"), map[WorkloadKey]*Workload{we("pod"): entry("10.1.0.1", "app", "x")}))
	if c, _ := s.Cluster("hub"); c.Endpoints != 2 {
		t.Errorf("the hub has %d endpoints, want 2", c.Endpoints)
	}
	s = step(t, s, Edit{Clusters: Delta[ClusterID, ClusterSpec]{Gone: []ClusterID{"c1"}}},
		ServiceChange{Key: webKey, Reasons: ReasonEndpoints})
	wantOffered(t, s, webKey, "10.2.0.1")
	if c, _ := s.Cluster("hub"); c.Endpoints != 1 {
		t.Errorf("the hub has %d endpoints, want 1", c.Endpoints)
	}
	if _, there := s.Cluster("c1"); there {
		t.Error("the cluster is listed still")
	}
}

func TestAddressPolicyAppliesToSelectedWorkloads(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}),
		workloads(hub, map[WorkloadKey]*Workload{we("vm"): entry("127.0.0.1", "app", "x")}))
	wantOffered(t, s, webKey)
	if !slices.Contains(conflictsOf(mustService(t, s, webKey)), ConflictAddressRefused) {
		t.Error("no problem says why")
	}
	s, _ = Next(s, Edit{Settings: &Settings{Addresses: AddressPolicy{AllowLoopback: true}}})
	wantOffered(t, s, webKey, "127.0.0.1")
}

// TestSelectorThatGoesTakesItsEndpointsAlong, and another one brings others.
func TestSelectorThatGoesTakesItsEndpointsAlong(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "x")}),
		workloads(hub, map[WorkloadKey]*Workload{we("x"): entry("10.2.0.1", "app", "x"), we("y"): entry("10.2.0.2", "app", "y")}))
	s = step(t, s, set(hub, map[ServiceKey]*Shard{webKey: selecting("app", "y")}),
		ServiceChange{Key: webKey, Reasons: ReasonSpec | ReasonEndpoints})
	wantOffered(t, s, webKey, "10.2.0.2")
	s = step(t, s, set(hub, map[ServiceKey]*Shard{webKey: web("")}), ServiceChange{Key: webKey, Reasons: ReasonSpec | ReasonEndpoints})
	wantOffered(t, s, webKey)
	step(t, s, workloads(hub, nil, we("y")))
	if got := s.Contribution(hub).Services.Set[webKey].Endpoints; len(got) != 0 {
		t.Errorf("the registry is reported to have declared %v", got)
	}
}
