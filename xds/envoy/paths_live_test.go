package envoy_test

import (
	"net/http"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
)

const adminRules = `kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - match: [{uri: {prefix: /admin}}]
    directResponse: {status: 403}
  - match: [{uri: {prefix: /mirrored}}]
    route: [{destination: {host: web.shop.svc.cluster.local}}]
    mirror: {host: copy.shop.svc.cluster.local}
  - route: [{destination: {host: web.shop.svc.cluster.local}}]`

// rawStatus asks for the path as it is written, which Go's client would clean.
func rawStatus(t *testing.T, from *testbed.Namespace, address, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.URL.Opaque = path
	response, err := from.Client(nil).Do(request)
	if err != nil {
		t.Fatalf("asking for %s: %v", path, err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// Sidecars match normalized paths: spelling one in another way does not get past a
// rule. The extent is a setting, with Istio's values.
func TestR31SidecarsNormalizePaths(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	shard := web(at("10.7.0.2", 8080))
	shard.VIPs = vips("10.96.0.1/32")
	w := newFixture().attach("c1", "").say("c1", webKey, shard).config(t, adminRules)
	plain, _ := pod(t, network, "10.7.0.8", w.snapshot)
	w.config(t, "kind: MeshSettings\nspec: {pathNormalization: {normalization: DECODE_AND_MERGE_SLASHES}}")
	strict, _ := pod(t, network, "10.7.0.9", w.snapshot)
	for _, c := range []struct {
		path        string
		plain, most int
	}{
		{"/admin", 403, 403},
		{"/public/../admin", 403, 403},
		{"/%61dmin", 403, 403},
		{"/.//admin", 200, 403},
		{"/%2Fadmin", 200, 403},
		{"/public", 200, 200},
	} {
		if got := rawStatus(t, plain, "10.96.0.1", c.path); got != c.plain {
			t.Errorf("%s is answered with %d, want %d", c.path, got, c.plain)
		}
		if got := rawStatus(t, strict, "10.96.0.1", c.path); got != c.most {
			t.Errorf("with DECODE_AND_MERGE_SLASHES, %s is answered with %d, want %d", c.path, got, c.most)
		}
	}
}

// A mirrored request has the host of the original.
func TestR31MirrorsKeepTheHost(t *testing.T) {
	network := testbed.NewNetwork(t, "pods", "10.7.0.0/24")
	server, _ := pod(t, network, "10.7.0.2", nil)
	testbed.StartEcho(t, testbed.EchoOptions{Name: "web", Namespace: server, HTTP: []int{8080}})
	shadow, _ := pod(t, network, "10.7.0.3", nil)
	hosts := make(chan string, 1)
	listener, err := shadow.Listen("0.0.0.0:8080")
	if err != nil {
		t.Fatal(err)
	}
	mirror := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case hosts <- r.Host:
		default: // the first one counts
		}
	})}
	go mirror.Serve(listener)
	t.Cleanup(func() { mirror.Close() })
	shard := web(at("10.7.0.2", 8080))
	shard.VIPs = vips("10.96.0.1/32")
	w := newFixture().attach("c1", "").say("c1", webKey, shard).say("c1", key("copy.shop.svc.cluster.local"),
		web(at("10.7.0.3", 8080))).config(t, adminRules)
	caller, _ := pod(t, network, "10.7.0.9", w.snapshot)
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for { // a mirrored request that fails is not repeated
		if r := caller.Get("http://10.96.0.1/mirrored", "Host", "web.shop"); r.Status != 200 {
			t.Fatalf("answered with %d %v", r.Status, r.Err)
		}
		again := time.NewTimer(5 * time.Second)
		select {
		case got := <-hosts:
			if got != "web.shop" {
				t.Errorf("the mirrored request is for %q, want web.shop", got)
			}
			return
		case <-again.C:
		case <-limit.C:
			t.Fatal("nothing was mirrored")
		}
	}
}

// Names are resolved again when their TTL is over, or else at Istio's rate.
func TestR31DNSClustersRespectTTLs(t *testing.T) {
	entry := external(443, federation.TCP, "backend.example.com")
	entry.Resolution = federation.DNSLB
	w := newFixture().attach("c1", "").say("c1", key("api.example.com"), entry)
	c, _ := find[*clusterv3.Cluster](t, build(t, envoy.ClusterType, client(t), w.snapshot), "outbound|443||api.example.com")
	if !c.GetRespectDnsTtl() || c.GetDnsRefreshRate().AsDuration() != time.Minute ||
		c.GetDnsFailureRefreshRate().GetMaxInterval().AsDuration() != 10*time.Second {
		t.Errorf("the cluster is resolved by %v", c)
	}
}

// Of objects of one age, which one apply makes, the name decides before the
// namespace, as with Istio.
func TestR31NamesDecideBetweenObjectsOfOneAge(t *testing.T) {
	const both = `kind: VirtualService
metadata: {name: b-first-by-namespace, namespace: other}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{directResponse: {status: 299}}]
---
kind: VirtualService
metadata: {name: a-first-by-name, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http: [{directResponse: {status: 298}}]`
	w := newFixture().attach("c1", "").say("c1", webKey, web()).config(t, both)
	if got := directStatus(t, w.snapshot); got != 298 {
		t.Errorf("requests are answered with %d, want 298 of shop/a-first-by-name", got)
	}
}
