package mock_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/registries/mock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source makes a writer of an aggregate the Sink of a registry.
type source struct {
	*federation.Writer
	said chan struct{}
}

func (s source) Update(e federation.Edit) {
	s.Writer.Update(e)
	close(s.said)
}

func (s source) Status(status federation.RegistryStatus) {
	s.Writer.Update(federation.Edit{Status: &status})
}

// attach runs a mock until the end of the test, once it has said everything.
func attach(t *testing.T, a *federation.Aggregate, id federation.ClusterID, network federation.NetworkID) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	sink := source{Writer: a.Open(federation.ShardKey{Cluster: id, Provider: federation.Mock}), said: make(chan struct{})}
	go func() { done <- mock.New(id, network).Run(ctx, sink) }()
	<-sink.said
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run said %v at the end of its context, want nil", err)
		}
	})
}

func TestSeed21MockAloneHasTwoServices(t *testing.T) {
	a := federation.NewAggregate(nil)
	attach(t, a, "c1", "")
	var hosts []string
	for svc := range a.Latest().Services().All() {
		hosts = append(hosts, string(svc.Key.Hostname))
		if len(svc.Conflicts) > 0 || svc.CountEndpoints() != 2 || len(svc.Instances(80)) != 2 {
			t.Errorf("%s: %d endpoints, %d instances on 80, conflicts %v", svc.Key, svc.CountEndpoints(), len(svc.Instances(80)), svc.Conflicts)
		}
	}
	want := []string{"hello.default.svc.cluster.local", "world.default.svc.cluster.local"}
	if !slices.Equal(hosts, want) {
		t.Errorf("services are %v, want %v", hosts, want)
	}
	c, _ := a.Latest().Cluster("c1")
	if c.Status.Phase != federation.Ready || c.Problems != 0 {
		t.Errorf("cluster c1 is %+v", c)
	}
}

func TestTwoMocksMergeAndKeepTheirVIPs(t *testing.T) {
	a := federation.NewAggregate(nil)
	attach(t, a, "c1", "n1")
	attach(t, a, "c2", "n2")
	svc, err := a.Latest().Services().Lookup("hello.default.svc.cluster.local")
	if err != nil || svc == nil {
		t.Fatalf("hello is %v, %v", svc, err)
	}
	for id, want := range map[federation.ClusterID]string{"c1": "10.1.0.1/32", "c2": "10.2.0.1/32"} {
		if got := svc.ClusterVIPs.Of(id); !slices.Equal(got, []netip.Prefix{netip.MustParsePrefix(want)}) {
			t.Errorf("the VIPs of %s are %v, want %s", id, got, want)
		}
	}
	for _, group := range svc.Endpoints {
		for _, e := range group.Endpoints {
			if want := federation.NetworkID("n" + string(group.Shard.Cluster[1:])); e.Network != want {
				t.Errorf("endpoint %s of %s is on %s, want %s", e.Address, group.Shard, e.Network, want)
			}
		}
	}
	labels := a.Latest().At(federation.Place{Network: "n2", Addresses: []netip.Addr{netip.MustParseAddr("10.2.1.2")}}).Labels()
	if len(labels) != 1 || labels[0]["version"] != "v1" {
		t.Errorf("the labels at 10.2.1.2 are %v, want version v1", labels)
	}
	if svc.CountEndpoints() != 4 {
		t.Errorf("hello has %d endpoints, want 4", svc.CountEndpoints())
	}
}
