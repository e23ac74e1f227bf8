package envoy_test

import (
	"math"
	"net/netip"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	"isthmus.dev/isthmus/xds/envoy/resource"
)

var webKey = federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "shop"}

func at(address string, port uint16) federation.Endpoint {
	var a federation.Address
	if err := a.UnmarshalText([]byte(address)); err != nil {
		panic(err)
	}
	return federation.Endpoint{Address: a, Ports: []federation.EndpointPort{{Name: "http", Number: port}}}
}

func web(endpoints ...federation.Endpoint) *federation.Shard {
	return &federation.Shard{Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}}, Endpoints: endpoints}
}

// client is a sidecar in cluster c1.
func client(t testing.TB) envoy.Node {
	return parse(t, "sidecar~10.0.0.9~client.shop~shop.svc.cluster.local", map[string]any{"CLUSTER_ID": "c1", "NAMESPACE": "shop"})
}

func webEndpoints(t testing.TB, w *fixture) (*endpointv3.ClusterLoadAssignment, []envoy.Reason) {
	t.Helper()
	return find[*endpointv3.ClusterLoadAssignment](t, build(t, envoy.EndpointType, client(t), w.snapshot),
		"outbound|80||web.shop.svc.cluster.local")
}

// list writes an assignment as ADDRESS:PORT*WEIGHT per locality.
func list(a *endpointv3.ClusterLoadAssignment) []string {
	var all []string
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress()
			text := "unix:" + address.GetPipe().GetPath()
			if s := address.GetSocketAddress(); s != nil {
				text = netip.AddrPortFrom(netip.MustParseAddr(s.GetAddress()), uint16(s.GetPortValue())).String()
			}
			all = append(all, text+" "+e.GetHealthStatus().String())
		}
	}
	return all
}

func expectEndpoints(t *testing.T, w *fixture, want ...string) {
	t.Helper()
	if a, _ := webEndpoints(t, w); !slices.Equal(list(a), want) {
		t.Errorf("endpoints are %q, want %q", list(a), want)
	}
}

func codes(reasons []envoy.Reason) []string {
	var all []string
	for _, r := range reasons {
		all = append(all, r.Code+" "+r.Address.String())
	}
	slices.Sort(all)
	return all
}

func TestSeed02EndpointPortIsThatOfTheWorkload(t *testing.T) {
	expectEndpoints(t, newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 33333))), "10.0.0.1:33333 HEALTHY")
}

func TestSeed06SocketIsAPipeWithoutPort(t *testing.T) {
	expectEndpoints(t, newFixture().attach("c1", "").say("c1", webKey, web(at("unix:/run/web.sock", 8080))), "unix:/run/web.sock HEALTHY")
}

func TestPortTrafficGoesOnlyToClustersThatDeclareIt(t *testing.T) {
	other := web(at("10.0.2.1", 9090))
	other.Ports = []federation.Port{{Name: "http", Number: 8080, Protocol: federation.HTTP}}
	w := newFixture().attach("c1", "").attach("c2", "").say("c1", webKey, web(at("10.0.1.1", 8080))).say("c2", webKey, other)
	a, reasons := webEndpoints(t, w)
	if want := []string{"10.0.1.1:8080 HEALTHY"}; !slices.Equal(list(a), want) {
		t.Errorf("port 80 goes to %q, want %q", list(a), want)
	}
	if want := []string{"PORT_NOT_DECLARED 10.0.2.1"}; !slices.Equal(codes(reasons), want) {
		t.Errorf("reasons are %q, want %q", codes(reasons), want)
	}
}

func TestEndpointIsFoundByItsOwnClustersPortName(t *testing.T) {
	other := web(federation.Endpoint{
		Address: federation.IPAddress(netip.MustParseAddr("10.0.2.1")),
		Ports:   []federation.EndpointPort{{Name: "http", Number: 1}, {Name: "rest", Number: 7000}},
	})
	other.Ports = []federation.Port{
		{Name: "rest", Number: 80, Protocol: federation.HTTP},
		{Name: "http", Number: 81, Protocol: federation.HTTP},
	}
	w := newFixture().attach("c1", "").attach("c2", "").say("c1", webKey, web(at("10.0.1.1", 8080))).say("c2", webKey, other)
	expectEndpoints(t, w, "10.0.1.1:8080 HEALTHY", "10.0.2.1:7000 HEALTHY")
}

func TestEndpointsLeftOutHaveReasons(t *testing.T) {
	sick, tired, unserved := at("10.0.0.2", 8080), at("10.0.0.3", 8080), at("10.0.0.4", 8080)
	renamed := at("10.0.0.5", 8080)
	renamed.Ports = []federation.EndpointPort{{Name: "web", Number: 8080}, {Name: "admin", Number: 9090}}
	sick.Health, tired.Health, unserved.Ports = federation.Unhealthy, federation.Draining, nil
	w := newFixture().attach("c1", "").say("c1", webKey, web(at("10.0.0.1", 8080), sick, tired, unserved, renamed,
		at("backend.example.com", 8080)))
	expectEndpoints(t, w, "10.0.0.1:8080 HEALTHY", "10.0.0.3:8080 DRAINING")
	_, reasons := webEndpoints(t, w)
	if want := []string{
		"HOSTNAME backend.example.com", "PORT_NOT_SERVED 10.0.0.4", "PORT_NOT_SERVED 10.0.0.5",
		"UNHEALTHY 10.0.0.2",
	}; !slices.Equal(codes(reasons), want) {
		t.Errorf("reasons are %q, want %q", codes(reasons), want)
	}
	for _, want := range []string{
		`10.0.0.4 does not listen on port "http"; it has no ports`,
		`10.0.0.5 does not listen on port "http"; it has "web" (8080), "admin" (9090)`,
	} {
		if !slices.ContainsFunc(reasons, func(r envoy.Reason) bool { return r.Message == want }) {
			t.Errorf("no reason is %q: %v", want, reasons)
		}
	}
}

func TestSameAddressInTwoClustersIsOfferedOnce(t *testing.T) {
	near, far := web(at("10.0.0.1", 8080)), web(at("10.0.0.1", 8080))
	near.Endpoints[0].Network, far.Endpoints[0].Network = "n1", "n2"
	near.Endpoints[0].Locality.Region, far.Endpoints[0].Locality.Region = "near", "far"
	w := newFixture().attach("a-far", "n2").attach("c1", "n1").say("a-far", webKey, far).say("c1", webKey, near)
	a, reasons := webEndpoints(t, w)
	if len(list(a)) != 1 || a.GetEndpoints()[0].GetLocality().GetRegion() != "near" {
		t.Errorf("the address leads to %v; want it once, in the proxy's own network", a)
	}
	if len(reasons) != 1 || reasons[0].Code != resource.ReasonDuplicateAddress || reasons[0].Shard.Cluster != "a-far" {
		t.Errorf("reasons are %v, want the other cluster's duplicate", reasons)
	}
}

func TestLocalitiesAreGroupedAndWeighed(t *testing.T) {
	var endpoints []federation.Endpoint
	for i, region := range []string{"r2", "r1", "r2"} {
		e := at("10.0.0."+string(rune('1'+i)), 8080)
		e.Locality.Region, e.Weight = region, uint32(i) // 0 counts as 1
		endpoints = append(endpoints, e)
	}
	a, _ := webEndpoints(t, newFixture().attach("c1", "").say("c1", webKey, web(endpoints...)))
	if len(a.GetEndpoints()) != 2 {
		t.Fatalf("there are %d localities, want 2", len(a.GetEndpoints()))
	}
	for i, want := range []struct {
		region string
		weight uint32
	}{{"r1", 1}, {"r2", 3}} {
		got := a.GetEndpoints()[i]
		if got.GetLocality().GetRegion() != want.region || got.GetLoadBalancingWeight().GetValue() != want.weight {
			t.Errorf("locality %d is %s with weight %d, want %v", i, got.GetLocality().GetRegion(), got.GetLoadBalancingWeight().GetValue(), want)
		}
	}
}

func TestGreatWeightsAreShiftedAlike(t *testing.T) {
	heavy, heavier, light := at("10.0.0.1", 80), at("10.0.0.2", 80), at("10.0.0.3", 80)
	heavy.Weight, heavier.Weight, light.Weight = 1<<31, math.MaxUint32, 1
	heavier.Locality.Region = "r1"
	a, _ := webEndpoints(t, newFixture().attach("c1", "").say("c1", webKey, web(heavy, heavier, light)))
	var got []uint32
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			got = append(got, max(e.GetLoadBalancingWeight().GetValue(), 1))
		}
	}
	if want := []uint32{1 << 30, 1, math.MaxUint32 >> 1}; !slices.Equal(got, want) {
		t.Errorf("weights are %d, want %d", got, want)
	}
}

func TestClusterTypeFollowsResolution(t *testing.T) {
	for resolution, c := range map[federation.Resolution]struct {
		addresses []string
		want      clusterv3.Cluster_DiscoveryType
		endpoints int // within the cluster
	}{
		federation.ClientSideLB:    {[]string{"10.0.0.1"}, clusterv3.Cluster_EDS, 0},
		federation.DNSLB:           {[]string{"a.example.com", "b.example.com", "10.0.0.1", "unix:/run/x"}, clusterv3.Cluster_STRICT_DNS, 3},
		federation.Passthrough:     {[]string{"10.0.0.1"}, clusterv3.Cluster_ORIGINAL_DST, 0},
		federation.DNSRoundRobinLB: {[]string{"a.example.com", "b.example.com"}, clusterv3.Cluster_LOGICAL_DNS, 1},
	} {
		shard := web()
		shard.Resolution = resolution
		for _, a := range c.addresses {
			shard.Endpoints = append(shard.Endpoints, at(a, 8080))
		}
		w := newFixture().attach("c1", "").say("c1", webKey, shard)
		got, _ := find[*clusterv3.Cluster](t, build(t, envoy.ClusterType, client(t), w.snapshot), "outbound|80||web.shop.svc.cluster.local")
		inside := 0
		for _, l := range got.GetLoadAssignment().GetEndpoints() {
			inside += len(l.GetLbEndpoints())
		}
		if got.GetType() != c.want || inside != c.endpoints {
			t.Errorf("%s gives a %s cluster with %d endpoints inside, want %s with %d", resolution, got.GetType(), inside, c.want, c.endpoints)
		}
		if has := len(build(t, envoy.EndpointType, client(t), w.snapshot)) == 1; has != (resolution == federation.ClientSideLB) {
			t.Errorf("%s: an assignment exists: %t", resolution, has)
		}
	}
}
