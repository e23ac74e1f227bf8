package graph_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"isthmus.dev/isthmus/deploy/testbed"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

// manyProxies are so many proxies, each at an address of its own.
func manyProxies(n int) *fleet.Fleet {
	all := fleet.New()
	for i := range n {
		all.Connect(fleet.Proxy{
			NodeID: fmt.Sprintf("p%05d", i), Type: "sidecar", Cluster: "c1",
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 9, byte(i / 250), byte(i % 250)})},
		})
	}
	return all
}

// TestU60PagesCostWhatTheyReturn: a page of proxies, of services or of endpoints from either end, and behind or before a
// cursor, takes as much for many as for few.
func TestU60PagesCostWhatTheyReturn(t *testing.T) {
	few, many := hubOver(t, meshOf(t, 200, 2), manyProxies(200)), hubOver(t, meshOf(t, 4000, 2), manyProxies(8000))
	for _, list := range []string{"proxies", "services", "endpoints"} {
		middle := at(few.answer("{list:"+list+"(first:100){pageInfo{endCursor}}}", nil), "list", "pageInfo", "endCursor")
		for _, page := range []string{"first:20", "last:20", fmt.Sprintf("first:20,after:%q", middle), fmt.Sprintf("last:20,before:%q", middle)} {
			query := "{" + list + "(" + page + "){nodes{__typename id}}}"
			cost := func(h hub) float64 {
				return testing.AllocsPerRun(5, func() {
					if _, errs := h.send(query, nil); len(errs) > 0 {
						t.Fatal(string(errs))
					}
				})
			}
			if a, b := cost(few), cost(many); b > a*1.3 {
				t.Errorf("%s takes %.0f allocations of few, and %.0f of many", query, a, b)
			}
		}
	}
}

// meshOf has so many services of a cluster, with so many endpoints each, half of them in another network.
func meshOf(t testing.TB, services, endpoints int) *federation.Snapshot {
	t.Helper()
	all := map[federation.ServiceKey]*federation.Shard{}
	for i := range services {
		key := federation.ServiceKey{Hostname: federation.Hostname(fmt.Sprintf("s%05d.shop.svc.cluster.local", i)), Namespace: "shop"}
		of := shard(fmt.Sprintf("10.%d.%d.1/32", 100+i/250, i%250))
		for j := range endpoints {
			of.Endpoints = append(of.Endpoints, endpoint(federation.NetworkID(fmt.Sprint("n", 1+j%2)), fmt.Sprintf("10.%d.%d.%d", i/250, i%250, j+1)))
		}
		all[key] = of
	}
	s, _ := federation.Next(federation.Empty(), federation.Edit{
		Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{
			"c1": {Provider: federation.Kubernetes, Network: "n1"},
		}},
	})
	s, _ = federation.Next(s, federation.Edit{Source: first, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: all}})
	return s
}

// BenchmarkU61Filters measures what fields of queries take that look at the whole mesh, with 4,000 services of 10 endpoints and 10,000
// proxies. The weights of the cost gate are these times, in units of 10 µs.
func BenchmarkU61Filters(b *testing.B) {
	from := &source{meshOf(b, 4000, 10)}
	options := graph.Options{Snapshots: from, Fleet: manyProxies(10_000), Hub: model.Hub{Version: "test"}}
	for _, query := range []string{
		"{hub{version}}",
		`{services(filter:{namespace:"shop"}){totalCount}}`,
		`{services(filter:{hostnameContains:"x"}){totalCount}}`,
		`{services(filter:{hasEndpoints:false}){totalCount}}`,
		`{services(filter:{networkID:"none"}){totalCount}}`,
		`{services(filter:{clusterID:"none"}){totalCount}}`,
		`{services(first:1,orderBy:{field:ENDPOINTS}){nodes{hostname}}}`,
		`{endpoints(filter:{health:UNHEALTHY}){totalCount}}`,
		`{endpoints(filter:{labels:[{key:"a",value:"b"}]}){totalCount}}`,
		`{cluster(clusterID:"c1"){endpoints(filter:{health:UNHEALTHY}){totalCount}}}`,
		`{cluster(clusterID:"c1"){services(filter:{hasConflicts:true}){totalCount}}}`,
		`{cluster(clusterID:"c1"){services(first:1){nodes{hostname}}}}`,
		`{network(networkID:"n1"){services(first:1){totalCount}}}`,
		`{network(networkID:"n1"){endpoints(first:1,filter:{health:UNHEALTHY}){totalCount}}}`,
		`{proxies(filter:{type:ROUTER}){totalCount}}`,
		`{proxies(filter:{nodeIDContains:"x"}){totalCount}}`,
		`{proxies(filter:{networkID:"none"}){totalCount}}`,
		`{a:proxies(filter:{networkID:"x"}){totalCount} b:proxies(filter:{networkID:"y"}){totalCount} c:proxies(filter:{networkID:"z"}){totalCount}}`,
		`{proxies(filter:{syncState:NACKED}){totalCount}}`,
		`{proxies(first:1,orderBy:{field:SYNC_STATE}){nodes{nodeID}}}`,
		`{network(networkID:"n1"){proxies(first:1){totalCount}}}`,
		`{overview{services{total}}}`,
	} {
		b.Run(query, func(b *testing.B) {
			handler := transport.New(graph.New(options), transport.Options{Log: slog.New(slog.DiscardHandler)})
			used := testbed.UsedCPU(b)
			defer func() { b.ReportMetric(float64((testbed.UsedCPU(b)-used).Microseconds())/float64(b.N), "cpu-µs/op") }()
			for b.Loop() {
				request := httptest.NewRequest(http.MethodGet, "/graphql?query="+url.QueryEscape(query), nil)
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, request)
				if recorder.Code != http.StatusOK || strings.Contains(recorder.Body.String(), "errors") {
					b.Fatal(recorder.Body.String())
				}
			}
		})
	}
}
