package federation

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestSeed01OneInstanceForEachServicePort(t *testing.T) {
	shard := &Shard{
		Ports: []Port{{Name: "http", Number: 80, Protocol: HTTP}, {Name: "grpc", Number: 8080, Protocol: GRPC}},
		Endpoints: []Endpoint{{Address: IPAddress(netip.MustParseAddr("172.16.0.1")), Ports: []EndpointPort{
			{Name: "http", Number: 8888}, {Name: "grpc", Number: 9999},
		}}},
	}
	svc := mustService(t, after(set(shardOf("c1"), map[ServiceKey]*Shard{key("foo.default.svc.cluster.local", "default"): shard})),
		key("foo.default.svc.cluster.local", "default"))
	got := svc.Instances(0)
	if len(got) != 2 || got[0].Port.Number != 80 || got[0].Number != 8888 || got[1].Port.Number != 8080 || got[1].Number != 9999 {
		t.Fatalf("want one instance for 80 at 8888 and one for 8080 at 9999, got %+v", got)
	}
}

func TestSeed03PortWithoutProtocolIsTCP(t *testing.T) {
	if got := ParseProtocol(""); got != TCP {
		t.Errorf("the empty protocol is %s, want TCP", got)
	}
	k := key("db.a", "a")
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: {Ports: []Port{{Number: 5432}}}}))
	if got := mustService(t, s, k).Ports[0].Protocol; got != TCP {
		t.Errorf("a port without protocol is %s, want TCP", got)
	}
	if got := ParseProtocol("telepathy"); got != Unsupported {
		t.Errorf("an unknown protocol is %s, want %s", got, Unsupported)
	}
}

func TestSeed04UnnamedPortAmongSeveralIsRefused(t *testing.T) {
	bad, good := key("bad.a", "a"), key("good.a", "a")
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{
		bad:  {Ports: []Port{{Number: 80, Protocol: HTTP}, {Name: "x", Number: 81}}},
		good: web("10.0.0.1"),
	}))
	if _, ok := s.Service(bad); ok {
		t.Error("the service with an unnamed port was accepted")
	}
	mustService(t, s, good)
	problems := slices.Collect(s.Problems("c1"))
	if len(problems) != 1 || problems[0].Object != "Service a/bad.a" || problems[0].Field != "ports[0].name" ||
		!strings.Contains(problems[0].Message, "80") {
		t.Fatalf("want one problem that names the service and ports[0].name, got %+v", problems)
	}
	s, _ = Next(s, set(shardOf("c1"), map[ServiceKey]*Shard{bad: web("10.0.0.2")}))
	mustService(t, s, bad)
	if c, _ := s.Cluster("c1"); c.Problems != 0 || len(slices.Collect(s.Problems("c1"))) != 0 {
		t.Error("the problem stayed after it was healed")
	}
}

func TestSeed05InstancesByLabels(t *testing.T) {
	k := key("catalog.mystore.com", "")
	s := after(set(shardOf("c1"), map[ServiceKey]*Shard{k: web("",
		endpoint("172.16.0.1", 8888, "foo", "bar"), endpoint("172.16.0.2", 8888, "foo", "bar"),
		endpoint("172.16.0.3", 8888, "kitty", "cat"), endpoint("172.16.0.4", 8888, "kitty", "cat"))}))
	svc := mustService(t, s, k)
	if got := addresses(svc.Instances(80, map[string]string{"foo": "bar"})); !slices.Equal(got, []string{"172.16.0.1", "172.16.0.2"}) {
		t.Errorf("foo=bar gives %v", got)
	}
	if got := svc.Instances(80); len(got) != 4 {
		t.Errorf("an empty label collection gives %d instances, want 4", len(got))
	}
	if got := svc.Instances(8888); len(got) != 0 {
		t.Errorf("the endpoint's port found %d instances: the service port decides", len(got))
	}
}

func TestSeed08ResolutionNumbers(t *testing.T) {
	if ClientSideLB != 0 || DNSLB != 1 || Passthrough != 2 {
		t.Fatalf("got %d %d %d, want 0 1 2", ClientSideLB, DNSLB, Passthrough)
	}
}

func TestSeed11ProxyWithTwoAddressesHasInstancesOfBoth(t *testing.T) {
	a, b := key("a.ns", "ns"), key("b.ns", "ns")
	far := shardOf("c2")
	s := after(
		set(shardOf("c1"), map[ServiceKey]*Shard{a: web("", endpoint("10.1.0.1", 80)), b: web("", endpoint("10.1.0.2", 80))}),
		set(far, map[ServiceKey]*Shard{a: web("", endpoint("10.1.0.1", 80))}))
	place := Place{Cluster: "c1", Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2")}}
	got := s.At(place).Instances()
	if len(got) != 2 || got[0].Service.Key == got[1].Service.Key {
		t.Fatalf("want one instance of a and one of b, got %v", addresses(got))
	}
	for _, i := range got {
		if i.Shard.Cluster != "c1" {
			t.Errorf("an instance of %s was found for a proxy of c1", i.Shard)
		}
	}
}

func TestSeed17ClusterThatNeverAnsweredIsNotSynced(t *testing.T) {
	s := after(
		Edit{Clusters: Delta[ClusterID, ClusterSpec]{Set: map[ClusterID]ClusterSpec{"c1": {}, "c2": {}}}},
		Edit{Source: shardOf("c1"), Services: Delta[ServiceKey, *Shard]{Full: true}, Status: &RegistryStatus{Phase: Ready}})
	for _, phase := range []Phase{Pending, Syncing, Stale, Failed, Held} {
		s, _ = Next(s, Edit{Source: shardOf("c2"), Status: &RegistryStatus{Phase: phase}})
		if s.HasSynced() {
			t.Errorf("synced, although c2 is %s and never said anything", phase)
		}
	}
	s, _ = Next(s, Edit{Source: shardOf("c2"), Services: Delta[ServiceKey, *Shard]{Full: true}})
	if !s.HasSynced() {
		t.Error("not synced, although both clusters were read")
	}
	s, _ = Next(s, Edit{Source: shardOf("c1"), Status: &RegistryStatus{Phase: Stale}})
	if !s.HasSynced() {
		t.Error("a link that is lost later takes back that the cluster was read")
	}
}

func TestSeed23SameHostnameInTwoClusters(t *testing.T) {
	k := key("web.shop.svc.cluster.local", "shop")
	s := after(
		set(shardOf("c1"), map[ServiceKey]*Shard{k: web("10.0.0.1", endpoint("172.16.1.1", 80))}),
		set(shardOf("c2"), map[ServiceKey]*Shard{k: web("10.1.0.1", endpoint("172.16.2.1", 80))}))
	svc := mustService(t, s, k)
	if s.Services().Len() != 1 {
		t.Fatalf("%d services, want 1", s.Services().Len())
	}
	if !slices.Equal(svc.ClusterVIPs.Of("c1"), []netip.Prefix{vip("10.0.0.1")}) ||
		!slices.Equal(svc.ClusterVIPs.Of("c2"), []netip.Prefix{vip("10.1.0.1")}) {
		t.Fatalf("ClusterVIPs are %v", svc.ClusterVIPs)
	}
	if got := addresses(svc.Instances(80)); !slices.Equal(got, []string{"172.16.1.1", "172.16.2.1"}) {
		t.Fatalf("instances are %v", got)
	}
}

func TestSeed26DetachedClusterVanishes(t *testing.T) {
	both, only := key("web.shop", "shop"), key("lone.shop", "shop")
	s := after(
		set(shardOf("c1"), map[ServiceKey]*Shard{both: web("10.0.0.1", endpoint("172.16.1.1", 80))}),
		Edit{
			Source: shardOf("c2"), Services: Delta[ServiceKey, *Shard]{Full: true, Set: map[ServiceKey]*Shard{
				both: web("10.1.0.1", endpoint("172.16.2.1", 80)), only: web("10.1.0.2"),
			}},
			Workloads: Delta[WorkloadKey, *Workload]{
				Full: true,
				Set:  map[WorkloadKey]*Workload{{Name: "pod"}: {Addresses: []netip.Addr{netip.MustParseAddr("172.16.2.1")}}},
			},
		})
	next, changes := Next(s, Edit{Clusters: Delta[ClusterID, ClusterSpec]{Gone: []ClusterID{"c2"}}})
	svc := mustService(t, next, both)
	if svc.ClusterVIPs.Of("c2") != nil || len(svc.Instances(80)) != 1 {
		t.Errorf("c2 is still in %v with %v", svc.ClusterVIPs, addresses(svc.Instances(80)))
	}
	if _, there := next.Service(only); there {
		t.Error("a service that only c2 had is still there")
	}
	if _, there := next.Cluster("c2"); there {
		t.Error("the cluster is still listed")
	}
	if at := (Place{Cluster: "c2", Addresses: []netip.Addr{netip.MustParseAddr("172.16.2.1")}}); len(next.At(at).Workloads()) != 0 {
		t.Error("a workload of c2 is still found by its address")
	}
	want := map[ServiceKey]bool{both: false, only: true}
	for _, c := range changes.Services {
		if gone, ok := want[c.Key]; !ok || gone != c.Gone || c.Reasons&ReasonSpec == 0 {
			t.Errorf("unexpected change %+v", c)
		}
		delete(want, c.Key)
	}
	if len(want) != 0 || !slices.Contains(changes.Clusters, "c2") {
		t.Errorf("not told: %v, clusters %v", want, changes.Clusters)
	}
}
