package xds

import (
	"fmt"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

// replaced is a hub whose Envoy sends captured requests to one of two versions
// of a service: a route names the subset, and a rule what it is.
func replaced(t *testing.T, delta bool) (*real, *load) {
	network := testbed.NewNetwork(t, "pods", "10.1.0.0/24")
	for name, address := range map[string]string{"v1": "10.1.0.2", "v2": "10.1.0.3"} {
		pod := testbed.NewNamespace(t, name)
		pod.Join(network, address)
		testbed.StartEcho(t, testbed.EchoOptions{Name: name, Namespace: pod, HTTP: []int{8080}})
	}
	web := labelled("web", "v1", "v2").Services
	web.Set[key("web")].VIPs = []netip.Prefix{netip.MustParsePrefix("10.96.0.1/32")}
	r := newReal(t, delta, web)
	r.pod.Join(network, "10.1.0.9")
	r.pod.Capture(testbed.ProxyUID)
	r.writer.Update(routedTo(t, "first", "v1"))
	r.await("everything to be accepted", r.inSync)
	l := startLoad(t, r.pod, "http://10.96.0.1/")
	r.await("the first answers", l.answeredBy("v1"))
	return r, l
}

// routedTo sends all requests to a subset, the only one, of that version.
func routedTo(t *testing.T, subset, version string) federation.Edit {
	t.Helper()
	e := rule(t, "web", fmt.Sprintf(`{"host": "web.shop.svc.cluster.local", "subsets": [{"name": %q, "labels": {"version": %q}}]}`,
		subset, version))
	spec := fmt.Sprintf(`{"hosts": ["web.shop.svc.cluster.local"], "http": [{"route": [{"destination": {"host": "web.shop.svc.cluster.local", "subset": %q}}]}]}`, subset)
	m := &networking.VirtualService{}
	if err := protojson.Unmarshal([]byte(spec), m); err != nil {
		t.Fatal(err)
	}
	k := federation.ObjectKey{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: "web"}
	e.Objects.Set[k] = &federation.Object{Key: k, Digest: spec, Names: m.GetHosts(), Spec: m}
	return e
}

// One subset replaces another, again and again, under load: not one request fails,
// though the hub ends none of its waits early.
func TestX25ReplacementUnderLoadLosesNothing(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r, l := replaced(t, delta)
		for i := range 10 {
			version := fmt.Sprintf("v%d", (i+1)%2+1)
			subset := fmt.Sprintf("s%d", i)
			r.writer.Update(routedTo(t, subset, version))
			r.await("answers from "+version, l.answeredBy(version))
			r.await("the old subset to go", r.hasClusters(cluster("web"), subsetOf("web", subset)))
		}
		r.await("everything to be accepted", r.inSync)
		l.none(t)
	})
}

// The new cluster is accepted before the route goes to it, and the old one goes
// only when the route away from it is accepted.
func TestX26ClusterGoesAfterItsRouteMovedAway(t *testing.T) {
	bothVariants(t, func(t *testing.T, delta bool) {
		r, l := replaced(t, delta)
		r.forget()
		r.writer.Update(routedTo(t, "second", "v2"))
		r.await("answers from v2", l.answeredBy("v2"))
		r.await("the old subset to go", r.hasClusters(cluster("web"), subsetOf("web", "second")))
		r.await("everything to be accepted", r.inSync)
		added, moved := r.first(Acked, envoy.ClusterType), r.first(Sent, envoy.RouteType)
		away, removed := r.first(Acked, envoy.RouteType), r.last(Sent, envoy.ClusterType)
		if added < 0 || moved < added || away < moved || removed < away {
			t.Errorf("the cluster was accepted as event %d, the route sent as %d and accepted as %d, the old cluster removed as %d",
				added, moved, away, removed)
		}
		l.none(t)
	})
}

func subsetOf(name, subset string) string {
	return fmt.Sprintf("outbound|80|%s|%s.shop.svc.cluster.local", subset, name)
}
