package federation

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// view is what a snapshot says, without version numbers.
type view struct {
	Services map[ServiceKey]Service
	Clusters map[ClusterID]Cluster
	Owners   map[AddressKey]int
	Problems []Problem
	Ports    map[uint16][]ServiceKey
	Networks map[NetworkID]Network
	KeySets  map[KeySource]KeySet
	Names    []Hostname
}

func viewOf(s *Snapshot) view {
	v := view{
		Services: map[ServiceKey]Service{}, Clusters: map[ClusterID]Cluster{}, Owners: map[AddressKey]int{},
		Ports: map[uint16][]ServiceKey{}, Networks: map[NetworkID]Network{},
	}
	for svc := range s.Services().All() {
		plain := *svc
		plain.SpecVersion, plain.EndpointsVersion, plain.AccountsVersion = 0, 0, 0
		v.Services[svc.Key] = plain
	}
	for c := range s.Clusters() {
		v.Clusters[c.ID] = *c
		v.Problems = append(v.Problems, slices.Collect(s.Problems(c.ID))...)
	}
	for addr := range 6 {
		for _, id := range []NetworkID{DefaultNetwork, "n1", "n2"} {
			at := AddressKey{Network: id, Addr: testAddress(addr)}
			v.Owners[at] = len(slices.Collect(ownersAt(s, at, "")))
		}
	}
	for n := range s.Networks() {
		plain := *n
		plain.Version = 0
		v.Networks[n.ID] = plain
	}
	v.Names = slices.Collect(s.GatewayNames())
	v.KeySets = maps.Collect(KeySetsIn(s))
	for port := uint16(79); port < 84; port++ {
		for svc := range s.Services().OnPort(port) {
			v.Ports[port] = append(v.Ports[port], svc.Key)
		}
	}
	return v
}

func testAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

func differ(a, b view) string {
	return cmp.Diff(a, b, cmp.Comparer(func(x, y netip.AddrPort) bool { return x == y }),
		cmp.Comparer(func(x, y netip.Addr) bool { return x == y }),
		cmp.Comparer(func(x, y netip.Prefix) bool { return x == y }), cmp.Comparer(func(x, y Address) bool { return x == y }))
}

func drawShard(t *rapid.T) *Shard {
	s := &Shard{
		Resolution: Resolution(rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "resolution")),
		ExportTo:   rapid.SampledFrom([][]string{nil, nil, {"*"}, {"."}}).Draw(t, "exportTo"),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "ports") {
		s.Ports = append(s.Ports, Port{
			Name:     rapid.SampledFrom([]string{"http", "web", "grpc", ""}).Draw(t, "name"),
			Number:   uint16(80 + i),
			Protocol: rapid.SampledFrom([]Protocol{HTTP, TCP, UDP, ""}).Draw(t, "protocol"),
		})
	}
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, Endpoint{
			Address:        IPAddress(testAddress(rapid.IntRange(0, 5).Draw(t, "address"))),
			Ports:          []EndpointPort{{Name: "http", Number: uint16(rapid.IntRange(8080, 8081).Draw(t, "port"))}},
			Health:         rapid.SampledFrom([]Health{Healthy, Unhealthy, Draining}).Draw(t, "health"),
			ServiceAccount: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "account"),
		})
	}
	if rapid.IntRange(0, 2).Draw(t, "selects") == 0 {
		s.Selector = &Selector{Labels: map[string]string{"app": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app")}}
		if rapid.Bool().Draw(t, "providers") {
			s.Selector.Providers = []Provider{rapid.SampledFrom([]Provider{Kubernetes, External}).Draw(t, "provider")}
		}
	}
	for range max(0, rapid.IntRange(-2, 2).Draw(t, "bound")) {
		b := BoundService{
			Service: key(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "target"), "ns"),
			Weight:  uint32(rapid.IntRange(0, 3).Draw(t, "share")),
		}
		if rapid.Bool().Draw(t, "limited") {
			b.Clusters = []ClusterID{rapid.SampledFrom([]ClusterID{"c1", "c2"}).Draw(t, "boundCluster")}
		}
		s.Bound = append(s.Bound, b)
	}
	for range max(0, rapid.IntRange(-2, 2).Draw(t, "aliases")) {
		s.Aliases = append(s.Aliases, rapid.SampledFrom([]Hostname{"a", "b", "d"}).Draw(t, "alias"))
	}
	if rapid.Bool().Draw(t, "vip") {
		s.VIPs = []netip.Prefix{netip.PrefixFrom(testAddress(200+rapid.IntRange(0, 3).Draw(t, "vip")), 32)}
	}
	if rapid.IntRange(0, 2).Draw(t, "gateway") == 0 {
		s.Labels = map[string]string{labelGatewayNetwork: string(drawNetworkID(t)), labelGatewayPort: "80"}
		s.External = []Address{IPAddress(testAddress(199 + rapid.IntRange(0, 2).Draw(t, "external"))), HostAddress("lb.example")}
	}
	return s
}

func drawServices(t *rapid.T) Delta[ServiceKey, *Shard] {
	d := Delta[ServiceKey, *Shard]{Full: rapid.Bool().Draw(t, "full"), Set: map[ServiceKey]*Shard{}}
	if d.Full {
		d.Keep = drawKeep(t, []ServiceKey{key("a", "ns"), key("b", "ns")})
	}
	draw := func() ServiceKey {
		return key(rapid.SampledFrom([]string{"a", "b", "c", exportedHost, exportedHost}).Draw(t, "host"),
			rapid.SampledFrom([]string{"ns", "ns", ""}).Draw(t, "namespace"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "set") {
		d.Set[draw()] = drawShard(t)
	}
	for range rapid.IntRange(0, 2).Draw(t, "gone") {
		if k := draw(); d.Set[k] == nil {
			d.Gone = append(d.Gone, k)
		}
	}
	return d
}

func drawWorkloads(t *rapid.T) Delta[WorkloadKey, *Workload] {
	draw := func() WorkloadKey {
		return WorkloadKey{
			Namespace: rapid.SampledFrom([]string{"", "ns"}).Draw(t, "podNamespace"),
			Name:      rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pod"),
		}
	}
	d := Delta[WorkloadKey, *Workload]{Full: rapid.Bool().Draw(t, "fullWorkloads"), Set: map[WorkloadKey]*Workload{}}
	if d.Full {
		d.Keep = drawKeep(t, []WorkloadKey{{Namespace: "ns", Name: "p"}})
	}
	for range rapid.IntRange(0, 2).Draw(t, "pods") {
		w := &Workload{
			Addresses: []netip.Addr{testAddress(rapid.IntRange(0, 5).Draw(t, "podIP"))},
			Labels:    map[string]string{"app": rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "podApp")},
		}
		if rapid.Bool().Draw(t, "podPort") {
			w.Ports = []EndpointPort{{Name: "http", Number: 8080}}
		}
		d.Set[draw()] = w
	}
	if k := draw(); d.Set[k] == nil {
		d.Gone = append(d.Gone, k)
	}
	return d
}

func drawNetworkID(t *rapid.T) NetworkID {
	return rapid.SampledFrom([]NetworkID{"n1", "n2"}).Draw(t, "network")
}

// drawNetworks is an edit of the configuration, which is a source of its own.
func drawNetworks(t *rapid.T) Edit {
	e := Edit{Source: ShardKey{Provider: Operator}}
	spec := &NetworkObject{}
	if rapid.Bool().Draw(t, "range") {
		spec.CIDRs = []netip.Prefix{netip.PrefixFrom(testAddress(rapid.IntRange(0, 5).Draw(t, "cidr")), rapid.IntRange(29, 32).Draw(t, "bits"))}
	}
	if rapid.Bool().Draw(t, "lists") {
		spec.Clusters = []ClusterID{rapid.SampledFrom([]ClusterID{"c1", "c2", "c3"}).Draw(t, "listed")}
	}
	for range rapid.IntRange(0, 2).Draw(t, "gateways") {
		g := NetworkGateway{Address: testAddress(rapid.IntRange(198, 204).Draw(t, "gatewayIP")).String()}
		switch rapid.IntRange(0, 2).Draw(t, "sort") {
		case 0:
			g = NetworkGateway{Hostname: rapid.SampledFrom([]string{"lb.example", "gw.example"}).Draw(t, "gatewayName")}
		case 1:
			g = NetworkGateway{Port: 80}
			g.Service.Hostname = rapid.SampledFrom([]Hostname{"a", "b"}).Draw(t, "gatewayService")
		}
		spec.Gateways = append(spec.Gateways, g)
	}
	network := &Object{
		Key:    ObjectKey{Group: MeshGroup, Kind: NetworkKind.Name, Name: string(drawNetworkID(t))},
		Digest: fmt.Sprintf("%+v", *spec), Spec: spec,
	}
	settings := &MeshSettings{
		GatewayNamespaces:      []string{rapid.SampledFrom([]string{"*", "ns"}).Draw(t, "allowed")},
		DefaultServiceExportTo: rapid.SampledFrom([][]string{nil, {"*"}, {"."}, {"ns", "other"}}).Draw(t, "visible"),
	}
	mesh := &Object{Key: MeshSettingsKey, Digest: fmt.Sprintf("%+v", *settings), Spec: settings}
	e.Objects.Set = map[ObjectKey]*Object{network.Key: network, mesh.Key: mesh}
	if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
		e.Objects = Delta[ObjectKey, *Object]{Gone: []ObjectKey{network.Key, mesh.Key}}
	}
	drawExport(t, &e.Objects)
	drawDrain(t, &e.Objects)
	way := VerdictKey{Observer: drawNetworkID(t), Gateway: netip.AddrPortFrom(testAddress(rapid.IntRange(198, 211).Draw(t, "probed")), 15443)}
	e.Verdicts.Set = map[VerdictKey]Verdict{way: {Observer: way.Observer, Reachable: rapid.Bool().Draw(t, "reachable"), Since: probedAt}}
	name := rapid.SampledFrom([]Hostname{"lb.example", "gw.example"}).Draw(t, "name")
	e.Resolved.Set = map[Hostname][]netip.Addr{name: {testAddress(210), testAddress(rapid.IntRange(210, 211).Draw(t, "answer"))}}
	from := KeySource{URI: "https://a.example", OpenID: rapid.Bool().Draw(t, "OpenID")}
	e.KeySets.Set = map[KeySource]KeySet{from: {Keys: rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "keys")}}
	if rapid.IntRange(0, 3).Draw(t, "keys are not needed") == 0 {
		e.KeySets = Delta[KeySource, KeySet]{Gone: []KeySource{from}}
	}
	return e
}

func drawEdit(t *rapid.T) Edit {
	if rapid.IntRange(0, 3).Draw(t, "configuration") == 0 {
		return drawNetworks(t)
	}
	source := shardOf(rapid.SampledFrom([]string{"c1", "c2", "c3"}).Draw(t, "cluster"))
	if source.Cluster == "c3" {
		source.Provider = External
	}
	e := Edit{Source: source, Services: drawServices(t)}
	switch rapid.IntRange(0, 7).Draw(t, "more") {
	case 0:
		e.Clusters.Set = map[ClusterID]ClusterSpec{source.Cluster: {
			Provider: source.Provider, Precedence: rapid.IntRange(1, 3).Draw(t, "precedence"),
			Network: rapid.SampledFrom([]NetworkID{"", "n1", "n2"}).Draw(t, "own"),
		}}
	case 1, 6:
		e.Workloads = drawWorkloads(t)
	case 2:
		e.Status = &RegistryStatus{Phase: rapid.SampledFrom([]Phase{Ready, Stale, Held}).Draw(t, "phase")}
	case 3:
		e.Problems = Delta[string, Problem]{Full: true, Set: map[string]Problem{"x": {Code: "X", Object: string(source.Cluster)}}}
	case 4:
		e.Settings = &Settings{Addresses: AddressPolicy{Own: []netip.AddrPort{
			netip.AddrPortFrom(testAddress(1), 8080),
			netip.AddrPortFrom(testAddress(198), 15443),
		}}}
	case 5:
		e.Clock = drawTime(t)
	case 7:
		e.Identity = &ClusterIdentity{Network: drawNetworkID(t)}
	}
	return e
}

// perSource deals the edits of each source in their own order, interleaved by
// the choice of pick.
func interleave(t *rapid.T, edits []Edit) []Edit {
	queues := map[ShardKey][]Edit{}
	for _, e := range edits {
		queues[e.Source] = append(queues[e.Source], e)
	}
	var out []Edit
	for len(queues) > 0 {
		sources := slices.SortedFunc(maps.Keys(queues), ShardKey.Compare)
		s := rapid.SampledFrom(sources).Draw(t, "next")
		out = append(out, queues[s][0])
		queues[s] = queues[s][1:]
		if len(queues[s]) == 0 {
			delete(queues, s)
		}
	}
	return out
}

func TestPropertyOrderOfSourcesDoesNotShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edits := rapid.SliceOfN(rapid.Custom(drawEdit), 1, 12).Draw(t, "edits")
		want, got := viewOf(after(edits...)), viewOf(after(interleave(t, edits)...))
		if d := differ(want, got); d != "" {
			t.Fatalf("another order gives another snapshot:\n%s", d)
		}
	})
}

func TestPropertyIncrementalEqualsFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := after(rapid.SliceOfN(rapid.Custom(drawEdit), 1, 15).Draw(t, "edits")...)
		again := Edit{Settings: &s.settings, Clock: s.clock}
		again.Objects.Set, again.Resolved.Set = map[ObjectKey]*Object{}, map[Hostname][]netip.Addr{}
		for o := range s.Objects().All() {
			again.Objects.Set[o.Key] = o
		}
		s.networks.resolved.Walk(func(name string, to []netip.Addr) bool { again.Resolved.Set[Hostname(name)] = to; return false })
		again.Verdicts.Set = map[VerdictKey]Verdict{}
		again.KeySets.Set = maps.Collect(KeySetsIn(s))
		for n := range s.Networks() {
			for _, g := range n.Gateways {
				for _, v := range g.Verdicts {
					again.Verdicts.Set[VerdictKey{v.Observer, g.Address}] = v
				}
			}
		}
		fresh := after(again)
		for c := range s.Clusters() {
			e := s.Contribution(ShardKey{Cluster: c.ID, Provider: c.Spec.Provider})
			e.Identity = &c.Identity
			e.Status, e.Clusters.Set = &c.Status, map[ClusterID]ClusterSpec{c.ID: c.Spec}
			fresh, _ = Next(fresh, e)
		}
		want, got := viewOf(s), viewOf(fresh)
		want.Problems, got.Problems = nil, nil
		for _, v := range []view{want, got} {
			for id, c := range v.Clusters {
				c.Problems, c.Listed = 0, true // a contribution is a complete list
				v.Clusters[id] = c
			}
		}
		if d := differ(want, got); d != "" {
			t.Fatalf("the contributions of all shards give another snapshot:\n%s", d)
		}
	})
}

// reader holds a copy of the services and keeps it current by ChangesSince.
type copyOf struct {
	services map[ServiceKey]*Service
	clusters map[ClusterID]*Cluster
	networks map[NetworkID]*Network
	version  uint64
}

func (c *copyOf) catchUp(s *Snapshot) {
	changes := s.ChangesSince(c.version)
	if changes.All {
		*c = copyOf{services: map[ServiceKey]*Service{}, clusters: map[ClusterID]*Cluster{}, networks: map[NetworkID]*Network{}}
		for n := range s.Networks() {
			c.networks[n.ID] = n
		}
		for svc := range s.Services().All() {
			c.services[svc.Key] = svc
		}
		for cl := range s.Clusters() {
			c.clusters[cl.ID] = cl
		}
	}
	for _, change := range changes.Services {
		if svc, ok := s.Service(change.Key); ok {
			c.services[change.Key] = svc
		} else {
			delete(c.services, change.Key)
		}
	}
	for _, id := range changes.Clusters {
		if cl, ok := s.Cluster(id); ok {
			c.clusters[id] = cl
		} else {
			delete(c.clusters, id)
		}
	}
	for _, id := range changes.Networks {
		if n, ok := s.Network(id); ok && n.Version > 0 {
			c.networks[id] = n
		} else {
			delete(c.networks, id)
		}
	}
	c.version = s.Version()
}

func TestPropertyChangesSinceCompletesTheOldCopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Empty()
		var mine copyOf
		for _, e := range rapid.SliceOfN(rapid.Custom(drawEdit), 1, 15).Draw(t, "edits") {
			if rapid.IntRange(0, 7).Draw(t, "detach") == 0 {
				e.Clusters.Gone = []ClusterID{"c2"}
			}
			s, _ = Next(s, e)
			if rapid.Bool().Draw(t, "read") {
				mine.catchUp(s)
			}
		}
		mine.catchUp(s)
		want := map[ServiceKey]*Service{}
		for svc := range s.Services().All() {
			want[svc.Key] = svc
		}
		if !maps.Equal(want, mine.services) {
			t.Fatalf("the copy has %v, the snapshot %v", mine.services, want)
		}
		networks := map[NetworkID]*Network{}
		for n := range s.Networks() {
			networks[n.ID] = n
		}
		if !maps.Equal(networks, mine.networks) {
			t.Fatalf("the copy has networks %v, the snapshot %v", mine.networks, networks)
		}
		for c := range s.Clusters() {
			if mine.clusters[c.ID] == nil || mine.clusters[c.ID].Status != c.Status || mine.clusters[c.ID].Spec != c.Spec {
				t.Fatalf("cluster %s is %+v in the copy, %+v in the snapshot", c.ID, mine.clusters[c.ID], c)
			}
		}
	})
}

func TestPropertyNextLeavesTheOldSnapshotAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := after(rapid.SliceOfN(rapid.Custom(drawEdit), 1, 6).Draw(t, "edits")...)
		before := viewOf(s)
		Next(s, drawEdit(t))
		if d := differ(before, viewOf(s)); d != "" {
			t.Fatalf("Next changed its argument:\n%s", d)
		}
	})
}

func TestChangesSinceBeyondTheHorizonIsAll(t *testing.T) {
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{key("stays", "ns"): web("")}))
	old := s.Version()
	for i := range 2 * journalSpan {
		k := key(fmt.Sprintf("s%d", i/2), "ns")
		e := set(shardOf("c1"), map[ServiceKey]*Shard{k: web("")})
		if i%2 == 1 {
			e = Edit{Source: shardOf("c1"), Services: Delta[ServiceKey, *Shard]{Gone: []ServiceKey{k}}}
		}
		s, _ = Next(s, e)
		if i%1000 != 0 {
			continue
		}
		if kept := s.journal.size(); kept > 3*journalSpan {
			t.Fatalf("the journal holds %d changes at version %d: it grows with time", kept, s.Version())
		}
		if behind := s.Version() - old; behind <= journalSpan/3 && s.ChangesSince(old).All {
			t.Fatalf("a reader %d versions behind gets All", behind)
		}
	}
	if c := s.ChangesSince(old); !c.All {
		t.Fatalf("a reader behind what is forgotten got %d changes, want All", len(c.Services))
	}
	if c := s.ChangesSince(s.Version() - 3); c.All || len(c.Services) != 2 {
		t.Fatalf("a reader close behind got %+v", c)
	}
}

// TestR63ListsOfChangesHaveNoRoomToSpare: many readers have one at the same time.
func TestR63ListsOfChangesHaveNoRoomToSpare(t *testing.T) {
	services := map[ServiceKey]*Shard{}
	for i := range 1000 {
		services[key(fmt.Sprintf("s%d", i), "ns")] = web("")
	}
	before := after(set(shardOf("c1"), map[ServiceKey]*Shard{key("old", "ns"): web("")}))
	s, _ := Next(before, set(shardOf("c1"), services))
	c := s.ChangesSince(before.Version())
	if len(c.Services) < len(services) || cap(c.Services) != len(c.Services) {
		t.Errorf("%d services changed, the list has room for %d", len(c.Services), cap(c.Services))
	}
	again := func() { s.ChangesSince(before.Version()) }
	if n := testing.AllocsPerRun(5, again); n > 10 {
		t.Errorf("a list of %d changes takes %.0f allocations", len(c.Services), n)
	}
}

// size is the number of changes that a journal holds.
func (j journal) size() (n int) {
	for _, latest := range []*record{j.young, j.old} {
		for r := latest; r != nil; r = r.before {
			n += len(r.entries)
		}
	}
	return n
}

func TestReasonsTellWhatChanged(t *testing.T) {
	k := key("web.a", "a")
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: web("10.0.0.1", endpoint("10.1.0.1", 80))}))
	account := endpoint("10.1.0.1", 80)
	account.ServiceAccount = "a/robot"
	for _, c := range []struct {
		name  string
		shard *Shard
		want  Reason
	}{
		{"endpoint comes", web("10.0.0.1", endpoint("10.1.0.1", 80), endpoint("10.1.0.2", 80)), ReasonEndpoints},
		{"VIP changes", web("10.0.0.9", endpoint("10.1.0.1", 80)), ReasonSpec},
		{"account comes", web("10.0.0.1", account), ReasonEndpoints | ReasonAccounts},
	} {
		next, changes := Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{k: c.shard}))
		if want := []ServiceChange{{Key: k, Reasons: c.want}}; !reflect.DeepEqual(changes.Services, want) {
			t.Errorf("%s: changes %v, want %v", c.name, changes.Services, want)
		}
		if next == s {
			t.Errorf("%s: nothing was published", c.name)
		}
	}
}
