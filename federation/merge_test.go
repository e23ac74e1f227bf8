package federation

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func conflictsOf(svc *Service) []ConflictKind {
	var kinds []ConflictKind
	for _, c := range svc.Conflicts {
		kinds = append(kinds, c.Kind)
	}
	return kinds
}

func TestMergePorts(t *testing.T) {
	k := key("web.shop", "shop")
	one := &Shard{
		Ports:     []Port{{Name: "http", Number: 80, Protocol: HTTP}, {Name: "dns", Number: 53, Protocol: UDP}},
		Endpoints: []Endpoint{endpoint("10.1.0.1", 8080)},
	}
	two := &Shard{
		Ports: []Port{{Name: "web", Number: 80, Protocol: TCP}, {Name: "dns", Number: 53, Protocol: TCP}},
		Endpoints: []Endpoint{{
			Address: IPAddress(netip.MustParseAddr("10.2.0.1")),
			Ports:   []EndpointPort{{Name: "web", Number: 9090}, {Name: "dns", Number: 5353}},
		}},
	}
	svc := mustService(t, after(set(shardOf("c2"), map[ServiceKey]*Shard{k: two}), set(shardOf("c1"), map[ServiceKey]*Shard{k: one})), k)
	if len(svc.Ports) != 3 {
		t.Fatalf("want 53/TCP, 53/UDP and 80, got %+v", svc.Ports)
	}
	port, _ := svc.Port(80)
	if port.Name != "http" || port.Protocol != HTTP || len(port.Declared) != 2 {
		t.Errorf("port 80 is %+v, want c1's name and protocol, declared by both", port)
	}
	if got := conflictsOf(svc); !slices.Equal(got, []ConflictKind{ConflictPortProtocol, ConflictPortName}) {
		t.Errorf("conflicts are %v", got)
	}
	numbers := map[string]uint16{}
	for _, i := range svc.Instances(80) {
		numbers[i.Endpoint.Address.String()] = i.Number
	}
	if numbers["10.1.0.1"] != 8080 || numbers["10.2.0.1"] != 9090 {
		t.Errorf("endpoint ports are %v: each is found through its own cluster's port name", numbers)
	}
	if got := addresses(svc.Instances(53)); !slices.Equal(got, []string{"10.2.0.1"}) {
		t.Errorf("port 53 goes to %v, want only clusters that declare it and serve it", got)
	}
}

func TestMergePrecedence(t *testing.T) {
	k := key("web.shop", "shop")
	shard := func(name string, age int) *Shard {
		s := &Shard{Ports: []Port{{Name: name, Number: 80, Protocol: HTTP}}}
		if age > 0 {
			s.Created = time.Unix(int64(age), 0)
		}
		return s
	}
	spec := func(id ClusterID, n int) Edit {
		return Edit{Clusters: Delta[ClusterID, ClusterSpec]{Set: map[ClusterID]ClusterSpec{id: {Provider: Kubernetes, Precedence: n}}}}
	}
	for _, c := range []struct {
		name  string
		edits []Edit
		want  string
	}{
		{"cluster ID decides last", []Edit{
			set(shardOf("b"), map[ServiceKey]*Shard{k: shard("b", 0)}),
			set(shardOf("a"), map[ServiceKey]*Shard{k: shard("a", 0)}),
		}, "a"},
		{"the older wins", []Edit{
			set(shardOf("a"), map[ServiceKey]*Shard{k: shard("a", 9)}),
			set(shardOf("b"), map[ServiceKey]*Shard{k: shard("b", 5)}),
		}, "b"},
		{"unknown age comes last", []Edit{
			set(shardOf("a"), map[ServiceKey]*Shard{k: shard("a", 0)}),
			set(shardOf("b"), map[ServiceKey]*Shard{k: shard("b", 5)}),
		}, "b"},
		{"precedence beats age", []Edit{
			set(shardOf("a"), map[ServiceKey]*Shard{k: shard("a", 9)}),
			set(shardOf("b"), map[ServiceKey]*Shard{k: shard("b", 5)}), spec("a", 1),
		}, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := mustService(t, after(c.edits...), k)
			if svc.Ports[0].Name != c.want || conflictsOf(svc)[0] != ConflictPortName {
				t.Errorf("port name is %q with conflicts %v, want %q", svc.Ports[0].Name, conflictsOf(svc), c.want)
			}
		})
	}
}

// TestR12MetadataAddresses: no metadata service is offered as an endpoint, or dialled.
func TestR12MetadataAddresses(t *testing.T) {
	for _, text := range []string{
		"169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"fd00:ec2::254", "::ffff:192.0.0.192",
	} {
		if (AddressPolicy{AllowLoopback: true}).Refuse(netip.MustParseAddr(text), 80) == "" {
			t.Errorf("%s may be offered", text)
		}
	}
	if why := (AddressPolicy{}).Refuse(netip.MustParseAddr("168.63.129.17"), 80); why != "" {
		t.Errorf("its neighbour %s", why)
	}
}

func TestAddressPolicyAppliesToAllThatIsOffered(t *testing.T) {
	k := key("web.shop", "shop")
	shard := web("127.0.0.1", endpoint("10.1.0.1", 80), endpoint("127.0.0.1", 80), endpoint("100.100.100.200", 80),
		endpoint("169.254.169.254", 80))
	shard.Endpoints = append(shard.Endpoints, Endpoint{Address: HostAddress("localhost"), Ports: []EndpointPort{{Name: "http", Number: 80}}})
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: shard}))
	svc := mustService(t, s, k)
	if got := addresses(svc.Instances(80)); !slices.Equal(got, []string{"10.1.0.1"}) {
		t.Fatalf("offered are %v, want 10.1.0.1 alone", got)
	}
	if len(svc.ClusterVIPs) != 0 || !slices.Contains(conflictsOf(svc), ConflictAddressRefused) {
		t.Fatalf("VIPs %v, conflicts %v", svc.ClusterVIPs, conflictsOf(svc))
	}
	s, _ = Next(s, Edit{Settings: &Settings{Addresses: AddressPolicy{AllowLoopback: true}}})
	svc = mustService(t, s, k)
	if len(svc.Instances(80)) != 3 || len(svc.ClusterVIPs) != 1 {
		t.Fatalf("after the policy allows loopback: %v, VIPs %v", addresses(svc.Instances(80)), svc.ClusterVIPs)
	}
	own := Settings{Addresses: AddressPolicy{Own: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:80")}}}
	s, _ = Next(s, Edit{Settings: &own})
	if got := mustService(t, s, k).Instances(80); len(got) != 0 {
		t.Fatalf("a listener of the hub is offered: %v", addresses(got))
	}
}

func TestDuplicateEndpointsAreOfferedOnceInTheirBestState(t *testing.T) {
	k := key("web.shop", "shop")
	sick := endpoint("10.1.0.1", 80)
	sick.Health = Unhealthy
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: web("", sick, endpoint("10.1.0.1", 80))}))
	got := mustService(t, s, k).Instances(80)
	if len(got) != 1 || got[0].Endpoint.Health != Healthy {
		t.Fatalf("got %+v", got)
	}
}

func TestLookupByHostname(t *testing.T) {
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{
		key("web", "a"): web(""), key("web", "b"): web(""), key("web.x", "a"): web(""),
	}))
	if _, err := s.Services().Lookup("web"); err == nil {
		t.Error("an ambiguous hostname was answered")
	}
	if svc, err := s.Services().Lookup("web.x"); err != nil || svc == nil {
		t.Errorf("web.x: %v %v", svc, err)
	}
	if svc, err := s.Services().Lookup("nothing"); err != nil || svc != nil {
		t.Errorf("nothing: %v %v", svc, err)
	}
}

// TestWhatIsRefusedIsKnownAllTheSame: endpoints that the policy refuses today may
// be offered after its next change, as they are then.
func TestWhatIsRefusedIsKnownAllTheSame(t *testing.T) {
	k := key("web.shop", "shop")
	loopback := Edit{Settings: &Settings{Addresses: AddressPolicy{AllowLoopback: true}}}
	first := set(shardOf("c1"), map[ServiceKey]*Shard{k: web("", endpoint("127.0.0.1", 80, "version", "v1"))})
	then := set(shardOf("c1"), map[ServiceKey]*Shard{k: web("", endpoint("127.0.0.1", 80, "version", "v2"))})
	for name, edits := range map[string][]Edit{
		"policy last": {first, then, loopback}, "policy first": {loopback, first, then},
	} {
		got := mustService(t, after(edits...), k).Instances(80)
		if len(got) != 1 || got[0].Endpoint.Labels["version"] != "v2" {
			t.Errorf("%s: offered are %+v, want the endpoint as it was said last", name, got)
		}
	}
}

func TestNamesThatAreAddressesAreRefused(t *testing.T) {
	for name, refused := range map[string]bool{
		"127.0.0.1": true, "127.1": true, "2130706433": true, "0x7f.1": true, "0x7f000001": true, "0177.0.0.1": true,
		"10.0.0.0x1": true, "169.254.169.254.": true, "db.1": true, "": true, ".": true,
		"web.example": false, "10.example": false, "1.2.3.x": false, "db1": false, "x0": false, "web.0xa.example": false,
	} {
		if why := (AddressPolicy{}).RefuseHost(name); (why != "") != refused {
			t.Errorf("%q: %q", name, why)
		}
	}
}

// TestExportToIsASet: the order of the names, and another way to say everywhere,
// is not a disagreement.
func TestExportToIsASet(t *testing.T) {
	for name, c := range map[string]struct {
		one, two []string
		conflict bool
	}{
		"order": {[]string{"b", "a"}, []string{"a", "b", "a"}, false}, "everywhere": {nil, []string{"*", "a"}, false},
		"another": {[]string{"a"}, []string{"b"}, true},
	} {
		k := key("web.shop", "shop")
		one, two := web(""), web("")
		one.ExportTo, two.ExportTo = c.one, c.two
		svc := mustService(t, after(set(shardOf("c1"), map[ServiceKey]*Shard{k: one}), set(shardOf("c2"), map[ServiceKey]*Shard{k: two})), k)
		if got := slices.Contains(conflictsOf(svc), ConflictExportTo); got != c.conflict {
			t.Errorf("%s: conflicts are %+v", name, svc.Conflicts)
		}
	}
}
