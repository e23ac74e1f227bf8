package graph_test

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// weighed are fields that lead from names to objects, in angle brackets, in operations whose pages are full.
var weighed = []struct{ field, query string }{
	{"Service.configObjects", `{services(first:200){nodes{hostname <configObjects(first:1){totalCount}>}}}`},
	{"ConfigObject.services of a hostname", `{configObjects(first:200,filter:{namespace:"shop"}){nodes{name <services(first:1){totalCount}>}}}`},
	{"ConfigObject.services of wildcards", `{configObjects(first:20,filter:{namespace:"wide"}){nodes{name <services(first:1){totalCount}>}}}`},
	{"ConfigObject.configRevision", `{configObjects(first:100,filter:{namespace:"shop"}){nodes{name <configRevision{revision}>}}}`},
	{"ConfigObject.status", `{configObjects(first:100,filter:{namespace:"shop"}){nodes{name <status{delivered acked findings{code}}>}}}`},
	{"Problem.configObject", `{cluster(clusterID:"c1"){problems(first:200){nodes{code <configObject{name}>}}}}`},
	{"Problem.service", `{cluster(clusterID:"c1"){problems(first:200){nodes{code <service{hostname}>}}}}`},
	{"Cluster.trustRoots", `{clusters(first:50){nodes{clusterID <trustRoots{fingerprint}>}}}`},
	{"Endpoint.proxies", `{services(first:150){nodes{endpoints(first:2){nodes{address <proxies(first:1){totalCount}>}}}}}`},
	{"Endpoint.proxies, filtered", `{services(first:50){nodes{endpoints(first:2){nodes{address <proxies(first:1,filter:{type:ROUTER}){totalCount}>}}}}}`},
	{"Endpoint.drain", `{services(first:150){nodes{endpoints(first:2){nodes{address <drain{name}>}}}}}`},
	{"Cluster.configObject", `{clusters(first:50){nodes{clusterID <configObject{name}>}}}`},
	{"Cluster.proxies", `{cluster(clusterID:"c1"){clusterID network{networkID} <proxies(first:1){totalCount}>}}`},
	{"Network.proxies", `{network(networkID:"n1"){networkID configObject{name} <proxies(first:1){totalCount}>}}`},
	{"Proxy.services", `{proxies(first:300){nodes{nodeID <services(first:1){totalCount}>}}}`},
	{"Service.proxies", `{services(first:300){nodes{hostname <proxies(first:1){totalCount}>}}}`},
}

// weighedMesh has so many services, an object for each and 20 of wildcards, and so many proxies at the endpoints of the services.
func weighedMesh(t testing.TB, services, sidecars int) configured {
	t.Helper()
	c := newConfigured(t, func(o *graph.Options) {
		o.Fleet = sidecarsOf(services, sidecars)
		o.Authority = &rooted{}
		for i := range 44 { // of a hub
			o.Config.Kinds = append(o.Config.Kinds, schema.Kind{Kind: federation.Kind{Group: "example.com", Name: fmt.Sprint("Kind", i)}})
		}
	})
	clusters := map[federation.ClusterID]federation.ClusterSpec{}
	for i := range 50 {
		clusters[federation.ClusterID(fmt.Sprint("c", i))] = federation.ClusterSpec{Provider: federation.Kubernetes, Network: "n1"}
	}
	c.mesh.Open(federation.ShardKey{Cluster: "hub", Provider: "OPERATOR"}).Update(federation.Edit{
		Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Set: clusters},
	})
	all, problems := map[federation.ServiceKey]*federation.Shard{}, map[string]federation.Problem{}
	for i := range services {
		of := shard(fmt.Sprintf("10.%d.%d.1/32", 100+i/250, i%250))
		for j := range 2 {
			of.Endpoints = append(of.Endpoints, endpoint("n1", placeOf(i, j).String()))
		}
		all[federation.ServiceKey{Hostname: federation.Hostname(fmt.Sprintf("s%05d.shop.svc.cluster.local", i)), Namespace: "shop"}] = of
		if i < 200 {
			problems[fmt.Sprint(i)] = federation.Problem{Code: "UNKNOWN", Object: fmt.Sprintf("%s shop/s%05d", []string{"Service", "VirtualService"}[i%2], i)}
		}
	}
	c.mesh.Open(first).Update(federation.Edit{
		Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: all},
		Problems: federation.Delta[string, federation.Problem]{Set: problems},
	})
	var manifests []string
	for i := range services {
		name := fmt.Sprintf("s%05d", i)
		manifests = append(manifests, strings.Replace(route("shop", name, "a"), name+".example.com", name+".shop.svc.cluster.local", 1))
		if len(manifests) == 50 {
			c.apply(routes(manifests...))
			manifests = nil
		}
	}
	for i := range 20 {
		name := fmt.Sprintf("w%05d", i)
		hosts := fmt.Sprintf("'*.shop.svc.cluster.local', s%05d.shop.svc.cluster.local", i)
		manifests = append(manifests, strings.Replace(route("wide", name, "a"), name+".example.com", hosts, 1))
	}
	c.apply(routes(manifests...))
	return c
}

// rooted has five roots of each of twenty trust domains, and each names five clusters.
type rooted struct{ rotating }

func (*rooted) Show() model.CertificateAuthority {
	bundles := make([]model.TrustBundle, 20)
	for i := range bundles {
		bundles[i].TrustDomain = fmt.Sprint("mesh", i)
		for j := range 5 {
			root := model.TrustRoot{Fingerprint: fmt.Sprint(i, ".", j), ExpiresAt: day}
			for k := range 5 {
				root.ClusterIDs = append(root.ClusterIDs, fmt.Sprint("c", (5*i+j+10*k)%50))
			}
			bundles[i].Roots = append(bundles[i].Roots, root)
		}
	}
	return model.CertificateAuthority{TrustDomain: "mesh0", Bundles: bundles}
}

func placeOf(service, endpoint int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(service / 250), byte(service % 250), byte(1 + endpoint)})
}

// sidecarsOf are sidecars at the endpoints of services, spread over them.
func sidecarsOf(services, sidecars int) *fleet.Fleet {
	all := fleet.New()
	for i := range sidecars {
		at := placeOf(i*services/sidecars, i%2)
		all.Connect(fleet.Proxy{
			NodeID: fmt.Sprintf("sidecar~%s~p%05d.shop~shop.svc.cluster.local", at, i), Type: "sidecar", Cluster: "c1", Network: "n1",
			Addresses: []netip.Addr{at},
		})
	}
	return all
}

// costOf is what the cost limit counts for the query.
func costOf(t testing.TB, options graph.Options, query string) float64 {
	t.Helper()
	limits := transport.DefaultLimits()
	limits.Cost = 1
	h := hub{t: t, handler: transport.New(graph.New(options), transport.Options{Log: slog.New(slog.DiscardHandler), Limits: limits})}
	_, errs := h.ask(query, nil)
	counted := regexp.MustCompile(`asks for up to (\d+) objects`).FindStringSubmatch(errs)
	if counted == nil {
		t.Fatalf("%s: %s", query, errs)
	}
	cost, err := strconv.ParseFloat(counted[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return cost
}

// cpuOf is the least processor time that the query takes, in µs.
func cpuOf(b *testing.B, h hub, query string) float64 {
	least := math.Inf(1)
	for range 15 {
		used := testbed.UsedCPU(b)
		const times = 4
		for range times {
			if _, errs := h.send(query, nil); len(errs) > 0 {
				b.Fatalf("%s: %s", query, errs)
			}
		}
		least = min(least, float64((testbed.UsedCPU(b)-used).Microseconds())/times)
	}
	return least
}

// BenchmarkR102Weights compares what fields take with what the cost limit counts for them, in units of 10 µs, in a mesh of a common
// size and in the large one of BenchmarkU61Filters. It fails for a field that takes more than twice of what is counted (R102).
func BenchmarkR102Weights(b *testing.B) {
	for _, mesh := range []struct{ services, proxies int }{{1000, 300}, {4000, 10_000}} {
		c := weighedMesh(b, mesh.services, mesh.proxies)
		for _, row := range weighed {
			b.Run(fmt.Sprintf("%s/%d", row.field, mesh.services), func(b *testing.B) {
				marked := regexp.MustCompile(`<(.*)>`)
				with, without := marked.ReplaceAllString(row.query, "$1"), marked.ReplaceAllString(row.query, "")
				counted := costOf(b, c.options, with) - costOf(b, c.options, without)
				took := 0.0
				for b.Loop() {
					took = (cpuOf(b, c.hub, with) - cpuOf(b, c.hub, without)) / 10
				}
				b.ReportMetric(counted, "counted")
				b.ReportMetric(took, "taken")
				if took > 2*counted {
					b.Errorf("%s takes %.0f, and %.0f are counted", row.field, took, counted)
				}
			})
		}
	}
}
