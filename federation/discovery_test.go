package federation

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

// proxyPlace is where the proxy of pod p of cluster c1 is.
func proxyPlace() Place {
	return Place{Cluster: "c1", Network: DefaultNetwork, Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.1")}}
}

// aPod is cluster c1 with one pod that runs the service web on port 8080.
func aPod(w *Workload) *Snapshot {
	e := set(shardOf("c1"), map[ServiceKey]*Shard{key("web.a", "a"): web("", endpoint("10.1.0.1", 8080, "app", "web"))})
	e.Clusters.Set = map[ClusterID]ClusterSpec{"c1": {Provider: Kubernetes}}
	w.Addresses = []netip.Addr{netip.MustParseAddr("10.1.0.1")}
	e.Workloads = Delta[WorkloadKey, *Workload]{Set: map[WorkloadKey]*Workload{{Namespace: "a", Name: "p"}: w}}
	return after(e)
}

func TestWhatIsKnownOfAProxy(t *testing.T) {
	probes := []Probe{{Port: 8080, Path: "/ready"}, {Port: 6000, Path: "/live"}}
	s := aPod(&Workload{
		Labels: map[string]string{"app": "web", "pod": "p"}, Locality: Locality{Region: "r1", Zone: "z1"}, Probes: probes,
		ManagementPorts: []Port{{Name: "ready", Number: 8080, Protocol: HTTP}, {Name: "live", Number: 6000, Protocol: HTTP}},
	})
	at := proxyPlace()
	if found := s.At(at).Workloads(); len(found) != 1 {
		t.Errorf("%d workloads, want the pod", len(found))
	}
	if labels := s.At(at).Labels(); !slices.ContainsFunc(labels,
		func(l map[string]string) bool { return maps.Equal(l, map[string]string{"app": "web", "pod": "p"}) }) {
		t.Errorf("labels are %v, want those of the pod", labels)
	}
	if where, ok := s.At(at).Locality(); !ok || where != (Locality{Region: "r1", Zone: "z1"}) {
		t.Errorf("locality is %v, %v", where, ok)
	}
	if found := s.At(at).Probes(); !reflect.DeepEqual(found, probes) {
		t.Errorf("probes are %+v", found)
	}
	// Port 8080 is asked by a probe and is that of the service all the same.
	if ports := s.At(at).ManagementPorts(); len(ports) != 1 || ports[0].Number != 6000 {
		t.Errorf("management ports are %+v, want 6000 alone", ports)
	}
	elsewhere := Place{Cluster: "c1", Network: "n9", Addresses: at.Addresses}
	if len(s.At(elsewhere).Workloads())+len(s.At(elsewhere).Instances())+len(s.At(elsewhere).Labels())+len(s.At(elsewhere).Probes())+
		len(s.At(elsewhere).ManagementPorts()) != 0 {
		t.Error("the same address of another network is another place")
	}
	if _, ok := s.At(elsewhere).Locality(); ok {
		t.Error("another network's place has a locality")
	}
}

func TestAccountsOfAService(t *testing.T) {
	one, two := endpoint("10.1.0.1", 8080), endpoint("10.1.0.2", 8080)
	one.ServiceAccount, two.ServiceAccount = "a/robot", "a/admin"
	two.Ports = []EndpointPort{{Name: "raw", Number: 9000}}
	shard := web("", one, two)
	shard.Ports = append(shard.Ports, Port{Name: "raw", Number: 90, Protocol: TCP})
	shard.ServiceAccounts = []string{"a/declared"}
	svc := mustService(t, after(set(shardOf("c1"), map[ServiceKey]*Shard{key("web.a", "a"): shard})), key("web.a", "a"))
	for _, c := range []struct {
		ports []uint16
		want  []string
	}{
		{nil, []string{"a/admin", "a/declared", "a/robot"}},
		{[]uint16{80}, []string{"a/declared", "a/robot"}},
		{[]uint16{90}, []string{"a/admin", "a/declared"}},
		{[]uint16{80, 90}, []string{"a/admin", "a/declared", "a/robot"}},
	} {
		if got := svc.AccountsFor(c.ports...); !slices.Equal(got, c.want) {
			t.Errorf("ports %v are run by %q, want %q", c.ports, got, c.want)
		}
	}
}
