package federation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var boundKey = key("all.example", "shop")

func boundTo(targets ...BoundService) *Shard { return &Shard{Bound: targets} }

func to(k ServiceKey, weight uint32) BoundService { return BoundService{Service: k, Weight: weight} }

func weights(svc *Service) map[string]uint32 {
	got := map[string]uint32{}
	for _, i := range svc.Instances(0) {
		got[i.Endpoint.Address.String()] = i.Endpoint.LoadBalancingWeight()
	}
	return got
}

func problemsOf(s *Snapshot, id ClusterID) []string {
	var all []string
	for p := range s.Problems(id) {
		all = append(all, p.Code+" "+p.Object+" "+p.Field)
	}
	return all
}

// TestBindingFollowsItsTargets: whatever they come to offer, it offers, and says
// where it runs.
func TestBindingFollowsItsTargets(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{boundKey: boundTo(to(webKey, 1), to(otherKey, 1))}))
	s = step(t, s, set(shardOf("c1"), map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.1", 8080))}),
		ServiceChange{Key: boundKey, Reasons: ReasonSpec | ReasonEndpoints},
		ServiceChange{Key: webKey, Reasons: ReasonSpec | ReasonEndpoints | ReasonAccounts})
	wantOffered(t, s, boundKey, "10.1.0.1")
	account := endpoint("10.1.0.2", 8080)
	account.ServiceAccount = "shop/web"
	s = step(t, s, set(shardOf("c1"), map[ServiceKey]*Shard{webKey: web("", account)}),
		ServiceChange{Key: boundKey, Reasons: ReasonEndpoints | ReasonAccounts},
		ServiceChange{Key: webKey, Reasons: ReasonEndpoints | ReasonAccounts})
	got := mustService(t, s, boundKey).Instances(80)
	if len(got) != 1 || got[0].Number != 8080 || got[0].Cluster() != "c1" || got[0].Shard != hub {
		t.Errorf("instances are %+v", got)
	}
	s = step(t, s, Edit{Clusters: Delta[ClusterID, ClusterSpec]{Gone: []ClusterID{"c1"}}},
		ServiceChange{Key: boundKey, Reasons: ReasonSpec | ReasonEndpoints | ReasonAccounts},
		ServiceChange{Key: webKey, Reasons: ReasonSpec, Gone: true})
	if svc := mustService(t, s, boundKey); svc.CountEndpoints() != 0 || len(svc.Ports) != 0 {
		t.Errorf("left are %+v and %+v", svc.Ports, svc.Endpoints)
	}
}

func TestBindingThroughBindingsAndSelectors(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{
		boundKey: boundTo(to(otherKey, 1)), otherKey: boundTo(to(webKey, 1)),
		webKey: selecting("app", "x"),
	}))
	s, c := Next(s, workloads(shardOf("c1"), map[WorkloadKey]*Workload{we("pod"): entry("10.1.0.1", "app", "x")}))
	if len(c.Services) != 3 || c.Reasons() != ReasonEndpoints {
		t.Errorf("changes are %+v", c)
	}
	for _, k := range []ServiceKey{webKey, otherKey, boundKey} {
		wantOffered(t, s, k, "10.1.0.1")
	}
}

func TestBindingLimitedToClusters(t *testing.T) {
	limited := to(webKey, 1)
	limited.Clusters = []ClusterID{"c2"}
	s := after(
		set(shardOf("c1"), map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.1", 80))}),
		set(shardOf("c2"), map[ServiceKey]*Shard{webKey: web("", endpoint("10.2.0.1", 80))}),
		set(hub, map[ServiceKey]*Shard{boundKey: boundTo(limited)}))
	wantOffered(t, s, boundKey, "10.2.0.1")
}

func TestPortsOfBindings(t *testing.T) {
	ports := func(list ...Port) *Shard {
		e := Endpoint{Address: endpoint("10.1.0.1", 1).Address}
		for _, p := range list {
			e.Ports = append(e.Ports, EndpointPort{Name: p.Name, Number: p.Number + 8000})
		}
		return &Shard{Ports: list, Endpoints: []Endpoint{e}}
	}
	for name, c := range map[string]struct {
		own, target []Port
		want        map[uint16]uint16
	}{
		"theirs": {nil, []Port{{Name: "http", Number: 80}, {Name: "grpc", Number: 90}}, map[uint16]uint16{80: 8080, 90: 8090}},
		"by number": {
			[]Port{{Name: "grpc", Number: 80}, {Name: "x", Number: 91}},
			[]Port{{Name: "http", Number: 80}, {Name: "grpc", Number: 90}},
			map[uint16]uint16{80: 8080},
		},
		"by name": {
			[]Port{{Name: "grpc", Number: 81}, {Name: "x", Number: 91}},
			[]Port{{Name: "http", Number: 80}, {Name: "grpc", Number: 90}},
			map[uint16]uint16{81: 8090},
		},
		"the only one":      {[]Port{{Name: "grpc", Number: 81}}, []Port{{Name: "http", Number: 80}}, map[uint16]uint16{81: 8080}},
		"another transport": {[]Port{{Name: "dns", Number: 53, Protocol: UDP}}, []Port{{Name: "dns", Number: 53}}, map[uint16]uint16{}},
	} {
		binding := boundTo(to(webKey, 1))
		binding.Ports = c.own
		svc := mustService(t, after(set(shardOf("c1"), map[ServiceKey]*Shard{webKey: ports(c.target...)}),
			set(hub, map[ServiceKey]*Shard{boundKey: binding})), boundKey)
		got := map[uint16]uint16{}
		for _, i := range svc.Instances(0) {
			got[i.Port.Number] = i.Number
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		for port, number := range c.want {
			if got[port] != number {
				t.Errorf("%s: port %d is at %d, want %d", name, port, got[port], number)
			}
		}
	}
}

// TestUnionOfPortsKeepsNamesApart: endpoints are found by port name.
func TestUnionOfPortsKeepsNamesApart(t *testing.T) {
	one := &Shard{
		Ports:     []Port{{Number: 80, Protocol: HTTP}},
		Endpoints: []Endpoint{{Address: endpoint("10.1.0.1", 1).Address, Ports: []EndpointPort{{Number: 8080}}}},
	}
	two := &Shard{
		Ports: []Port{{Number: 90, Protocol: GRPC}, {Number: 80, Protocol: TCP}},
		Endpoints: []Endpoint{{
			Address: endpoint("10.1.0.2", 1).Address,
			Ports:   []EndpointPort{{Name: "g", Number: 9090}, {Name: "h", Number: 9080}},
		}},
	}
	two.Ports[0].Name, two.Ports[1].Name = "g", "h"
	s := after(set(hub, map[ServiceKey]*Shard{webKey: one, otherKey: two, boundKey: boundTo(to(webKey, 1), to(otherKey, 1))}))
	svc := mustService(t, s, boundKey)
	if got := svc.Ports; len(got) != 2 || got[0].Name != "tcp-80" || got[0].Protocol != HTTP || got[1].Name != "g" {
		t.Fatalf("ports are %+v", got)
	}
	if got := addresses(svc.Instances(80)); !slices.Equal(got, []string{"10.1.0.1", "10.1.0.2"}) {
		t.Errorf("port 80 goes to %v", got)
	}
	if got := addresses(svc.Instances(90)); !slices.Equal(got, []string{"10.1.0.2"}) {
		t.Errorf("port 90 goes to %v", got)
	}
}

func TestWeightsOfBindings(t *testing.T) {
	heavy, light, sick := endpoint("10.1.0.2", 80), endpoint("10.2.0.1", 80), endpoint("10.2.0.2", 80)
	heavy.Weight, light.Weight, sick.Health = 2, 1, Unhealthy
	three := web("", endpoint("10.1.0.1", 80), heavy)
	for name, c := range map[string]struct {
		web, other  *Shard
		ofWeb, rest uint32
		want        map[string]uint32
	}{
		"halves":      {three, web("", light), 1, 1, map[string]uint32{"10.1.0.1": 1, "10.1.0.2": 2, "10.2.0.1": 3}},
		"nine to one": {three, web("", light), 90, 10, map[string]uint32{"10.1.0.1": 3, "10.1.0.2": 6, "10.2.0.1": 1}},
		"none":        {three, web("", light), 1, 0, map[string]uint32{"10.1.0.1": 1, "10.1.0.2": 2}},
		"the healthy count": {
			three, web("", light, sick), 1, 1,
			map[string]uint32{"10.1.0.1": 1, "10.1.0.2": 2, "10.2.0.1": 3, "10.2.0.2": 3},
		},
		"nobody else is there": {three, web(""), 1, 99, map[string]uint32{"10.1.0.1": 1, "10.1.0.2": 2}},
		"endpoint of both": {
			web("", endpoint("10.1.0.1", 80)), web("", endpoint("10.1.0.1", 80), endpoint("10.2.0.1", 80)), 1, 1,
			map[string]uint32{"10.1.0.1": 3, "10.2.0.1": 1},
		},
	} {
		s := after(set(hub, map[ServiceKey]*Shard{
			webKey: c.web, otherKey: c.other,
			boundKey: boundTo(to(webKey, c.ofWeb), to(otherKey, c.rest)),
		}))
		got := weights(mustService(t, s, boundKey))
		if len(got) != len(c.want) {
			t.Errorf("%s: weights are %v, want %v", name, got, c.want)
		}
		for address, weight := range c.want {
			if got[address] != weight {
				t.Errorf("%s: %s has weight %d, want %d", name, address, got[address], weight)
			}
		}
	}
}

// TestWeightsBeyondExactness: sums without a common multiple that a proxy takes
// are met as closely as it takes them.
func TestWeightsBeyondExactness(t *testing.T) {
	var offers []offer
	for i, sum := range []uint32{4294967291, 4294967279, 3} {
		var list []Endpoint
		for _, w := range []uint32{1, sum - 1} {
			list = append(list, Endpoint{Weight: w, Health: Healthy})
		}
		offers = append(offers, offer{weight: uint64(i + 1), endpoints: list})
	}
	weigh(offers)
	var total uint64
	var parts [3]uint64
	for i, o := range offers {
		for _, e := range o.endpoints {
			if e.Weight < 1 {
				t.Errorf("an endpoint has weight %d", e.Weight)
			}
			parts[i] += uint64(e.Weight)
		}
		total += parts[i]
	}
	if total > mostWeight {
		t.Errorf("weights add up to %d", total)
	}
	for i, part := range parts {
		if share := float64(part) / float64(total) * 6; share < float64(i+1)-0.001 || share > float64(i+1)+0.001 {
			t.Errorf("service %d takes %f of 6 parts, want %d", i, share, i+1)
		}
	}
}

// TestBindingCycle: whatever comes first, a circle is found, told of and left
// empty, and heals with the edit that opens it.
func TestBindingCycle(t *testing.T) {
	third := key("third.example", "shop")
	outside := key("outside.example", "shop")
	self := set(hub, map[ServiceKey]*Shard{boundKey: boundTo(to(boundKey, 1))})
	if s := after(self); mustService(t, s, boundKey).CountEndpoints() != 0 || len(problemsOf(s, "hub")) != 1 {
		t.Errorf("bound to itself: %v", problemsOf(s, "hub"))
	}
	a := set(hub, map[ServiceKey]*Shard{boundKey: boundTo(to(webKey, 1), to(otherKey, 1))})
	b := set(hub, map[ServiceKey]*Shard{otherKey: boundTo(to(third, 1))})
	c := set(hub, map[ServiceKey]*Shard{third: boundTo(to(boundKey, 1))})
	d := set(hub, map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.1", 80)), outside: boundTo(to(boundKey, 1), to(webKey, 1))})
	for _, edits := range [][]Edit{{a, b, c, d}, {d, c, b, a}, {b, d, a, c}, {c, a, d, b}} {
		s := after(edits...)
		var circles []string
		for p := range s.Problems("hub") {
			if p.Code == "BINDING_CYCLE" && strings.Contains(p.Message, "leads back") {
				circles = append(circles, p.Object)
			}
		}
		if want := []string{
			"Service shop/all.example", "Service shop/other.example",
			"Service shop/third.example",
		}; !slices.Equal(circles, want) {
			t.Errorf("circles are %v, want %v", circles, want)
		}
		for _, k := range []ServiceKey{boundKey, otherKey, third} {
			if n := mustService(t, s, k).CountEndpoints(); n != 0 {
				t.Errorf("%s of the circle has %d endpoints", k, n)
			}
		}
		wantOffered(t, s, outside, "10.1.0.1")
		s, _ = Next(s, set(hub, map[ServiceKey]*Shard{third: web("", endpoint("10.1.0.3", 80))}))
		if got := problemsOf(s, "hub"); len(got) != 0 {
			t.Errorf("after the circle was opened there are %v", got)
		}
		wantOffered(t, s, boundKey, "10.1.0.1", "10.1.0.3")
	}
}

func TestBindingTargetMissing(t *testing.T) {
	s := after(set(hub, map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.1", 80)), boundKey: boundTo(to(webKey, 1), to(otherKey, 1))}))
	wantOffered(t, s, boundKey, "10.1.0.1")
	if got := problemsOf(s, "hub"); !slices.Equal(got, []string{"BINDING_TARGET_MISSING Service shop/all.example services[1]"}) {
		t.Errorf("problems are %v", got)
	}
	s, _ = Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{otherKey: web("", endpoint("10.1.0.2", 80))}))
	if got := problemsOf(s, "hub"); len(got) != 0 {
		t.Errorf("problems are %v although the service came", got)
	}
	s, _ = Next(s, Edit{Source: shardOf("c1"), Services: Delta[ServiceKey, *Shard]{Full: true}})
	if got := problemsOf(s, "hub"); len(got) != 1 {
		t.Errorf("problems are %v although the service was deleted", got)
	}
	s, _ = Next(s, Edit{Source: hub, Services: Delta[ServiceKey, *Shard]{Gone: []ServiceKey{boundKey}}})
	if c, _ := s.Cluster("hub"); c.Problems != 0 || len(problemsOf(s, "hub")) != 0 {
		t.Errorf("problems are %v although the binding went", problemsOf(s, "hub"))
	}
}

// TestBindingFindsServicesWithoutNamespace: such as those of Consul, unless the
// namespace has one of that name.
func TestBindingFindsServicesWithoutNamespace(t *testing.T) {
	consul := ShardKey{Cluster: "dc1", Provider: Consul}
	s := after(set(hub, map[ServiceKey]*Shard{boundKey: boundTo(to(webKey, 1))}),
		set(consul, map[ServiceKey]*Shard{key("web.example", ""): web("", endpoint("10.9.0.1", 80))}))
	wantOffered(t, s, boundKey, "10.9.0.1")
	s, _ = Next(s, set(hub, map[ServiceKey]*Shard{webKey: web("", endpoint("10.1.0.1", 80))}))
	wantOffered(t, s, boundKey, "10.1.0.1")
	s, _ = Next(s, Edit{Source: hub, Services: Delta[ServiceKey, *Shard]{Gone: []ServiceKey{webKey}}})
	wantOffered(t, s, boundKey, "10.9.0.1")
	if got := problemsOf(s, "hub"); len(got) != 0 {
		t.Errorf("problems are %v", got)
	}
}

func TestResolutionOfBindings(t *testing.T) {
	for resolution, want := range map[Resolution]Resolution{
		ClientSideLB: ClientSideLB, Passthrough: ClientSideLB,
		DNSLB: DNSLB, DNSRoundRobinLB: DNSLB,
	} {
		target := web("", endpoint("10.1.0.1", 80))
		target.Resolution = resolution
		s := after(set(hub, map[ServiceKey]*Shard{
			webKey: web("", endpoint("10.1.0.2", 80)), otherKey: target,
			boundKey: boundTo(to(webKey, 1), to(otherKey, 1)),
		}))
		if got := mustService(t, s, boundKey).Resolution; got != want {
			t.Errorf("bound to %s it is %s, want %s", resolution, got, want)
		}
	}
}

// TestLongChainsOfBindings: they cost what they are long, and no more.
func TestLongChainsOfBindings(t *testing.T) {
	const long = 20000
	all := map[ServiceKey]*Shard{}
	name := func(i int) ServiceKey { return key(fmt.Sprintf("s%d", i), "shop") }
	for i := range long {
		all[name(i)] = boundTo(to(name(i+1), 1))
	}
	s := after(set(hub, all))
	s, _ = Next(s, set(hub, map[ServiceKey]*Shard{name(long): web("", endpoint("10.1.0.1", 80))}))
	wantOffered(t, s, name(0), "10.1.0.1")
	s, _ = Next(s, set(hub, map[ServiceKey]*Shard{name(long): boundTo(to(name(0), 1))}))
	if c, _ := s.Cluster("hub"); c.Problems != long+1 {
		t.Errorf("%d problems, want one for each service of the circle", c.Problems)
	}
}
