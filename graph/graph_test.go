package graph_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

type fixed struct{ snapshot *federation.Snapshot }

func (f fixed) Latest() *federation.Snapshot { return f.snapshot }

func (fixed) Counters(id federation.ClusterID) (lastEvent, lastSync time.Time) {
	if id != "c1" {
		return time.Time{}, time.Time{}
	}
	return time.Date(2026, 11, 21, 10, 0, 2, 0, time.UTC), time.Date(2026, 11, 21, 10, 0, 1, 0, time.UTC)
}

func (fixed) Proxies() []model.Proxy {
	connected := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	sent := "7f"
	return []model.Proxy{{
		ID: model.ID(model.KindProxy, "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local"), NodeID: "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local",
		Type: model.ProxyTypeSidecar, RouterMode: model.RouterModeStandard, ClusterID: "c1", Network: "n1", Namespace: "shop",
		Delivery: model.DeliveryDelta, ConnectedAt: connected,
		Sync: []model.ProxySync{{TypeURL: "type.googleapis.com/envoy.config.cluster.v3.Cluster", State: model.SyncStatePending, VersionSent: &sent, Since: &connected}},
	}}
}

func shard(vip string, labels map[string]string, addresses ...string) *federation.Shard {
	made := &federation.Shard{
		Ports: []federation.Port{{Name: "http", Number: 80, Protocol: federation.HTTP}},
		VIPs:  []netip.Prefix{netip.MustParsePrefix(vip)},
	}
	for _, address := range addresses {
		made.Endpoints = append(made.Endpoints, federation.Endpoint{
			Address: federation.IPAddress(netip.MustParseAddr(address)), Ports: []federation.EndpointPort{{Name: "http", Number: 8080}},
			Locality: federation.Locality{Region: "r1", Zone: "z" + address[len(address)-1:]}, Health: federation.Healthy, Labels: labels,
		})
	}
	return made
}

// world has shop/web in two clusters on two networks, and 120 services more in
// the second.
func world(t *testing.T) *federation.Snapshot {
	t.Helper()
	since := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	web := federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "shop"}
	twin := federation.ServiceKey{Hostname: "web.shop.svc.cluster.local", Namespace: "other"}
	first := map[federation.ServiceKey]*federation.Shard{web: shard("10.1.0.1/32", map[string]string{"v": "1"}, "10.0.0.1", "10.0.0.2")}
	second := map[federation.ServiceKey]*federation.Shard{web: shard("10.2.0.0/24", map[string]string{"v": "2"}, "10.0.1.1"), twin: shard("10.2.9.9/32", nil)}
	second[web].Ports[0].Protocol = federation.TCP
	for i := range 120 {
		key := federation.ServiceKey{Hostname: federation.Hostname(fmt.Sprintf("s%03d.load.svc.cluster.local", i)), Namespace: "load"}
		second[key] = shard(fmt.Sprintf("10.3.0.%d/32", i), nil, "10.0.1.9")
	}
	snapshot := federation.Empty()
	for _, edit := range []federation.Edit{
		{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{
			"c1": {Provider: federation.Kubernetes, Network: "n1", Precedence: 10}, "c2": {Provider: federation.Kubernetes, Network: "n2"},
		}}},
		{Source: federation.ShardKey{Cluster: "c1", Provider: federation.Kubernetes}, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: first},
			Status: &federation.RegistryStatus{Phase: federation.Ready, Since: since}},
		{Source: federation.ShardKey{Cluster: "c2", Provider: federation.Kubernetes}, Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: second},
			Status:   &federation.RegistryStatus{Phase: federation.Stale, Since: since, Message: "the link is lost", LastKnownGood: since},
			Problems: federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{"a": {Code: "PORT_RANGE", Object: "Service load/x", Field: "spec.ports[0]", Message: "port 70000"}}}},
	} {
		snapshot, _ = federation.Next(snapshot, edit)
	}
	return snapshot
}

type hub struct {
	t       *testing.T
	handler http.Handler
}

func newHub(t *testing.T) hub {
	t.Helper()
	source := fixed{world(t)}
	schema := graph.New(graph.Options{
		Snapshots: source, Counters: source, Proxies: source, Hub: model.Hub{Version: "test", ClusterID: "hub"},
		Now: func() time.Time { return time.Date(2026, 11, 21, 9, 1, 30, 0, time.UTC) },
	})
	return hub{t, transport.New(schema, transport.Options{Log: slog.New(slog.DiscardHandler)})}
}

// ask returns the answer's data, or its errors as text.
func (h hub) ask(query string, variables map[string]any) (data map[string]any, errs string) {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		h.t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.handler.ServeHTTP(recorder, request)
	text, _ := io.ReadAll(recorder.Body)
	var answer struct {
		Data   map[string]any
		Errors json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		h.t.Fatalf("%v: %s", err, text)
	}
	return answer.Data, string(answer.Errors)
}

// at follows a path of names and indexes through an answer.
func at(data any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := data.(map[string]any)
			data = object[step]
		case int:
			list, _ := data.([]any)
			if step >= len(list) {
				return nil
			}
			data = list[step]
		}
	}
	return data
}

func (h hub) want(data any, want any, path ...any) {
	h.t.Helper()
	if got := at(data, path...); !reflect.DeepEqual(got, want) {
		h.t.Errorf("%v is %v, want %v", path, got, want)
	}
}

func TestContractIsAnswered(t *testing.T) {
	h := newHub(t)
	operations := contract(t)
	for _, size := range []int{50, 500} {
		for name, text := range operations {
			variables := map[string]any{"first": size, "hostname": "web.shop.svc.cluster.local", "namespace": "shop"}
			if _, errs := h.ask(text, variables); errs != "" {
				t.Errorf("%s of %d: %s", name, size, errs)
			}
		}
	}
	clusters, _ := h.ask(operations["Clusters"], nil)
	h.want(clusters, float64(2), "clusters", "totalCount")
	h.want(clusters, "c1", "clusters", "nodes", 0, "clusterID")
	h.want(clusters, "KUBERNETES", "clusters", "nodes", 0, "provider")
	h.want(clusters, "READY", "clusters", "nodes", 0, "status", "phase")
	h.want(clusters, "2026-11-21T09:00:00Z", "clusters", "nodes", 0, "status", "since")
	h.want(clusters, "2026-11-21T10:00:02Z", "clusters", "nodes", 0, "status", "lastEvent")
	h.want(clusters, nil, "clusters", "nodes", 0, "status", "message")
	h.want(clusters, "the link is lost", "clusters", "nodes", 1, "status", "message")
	h.want(clusters, float64(122), "clusters", "nodes", 1, "services", "totalCount")
	h.want(clusters, float64(121), "clusters", "nodes", 1, "endpoints", "totalCount")
	proxies, _ := h.ask(operations["Proxies"], nil)
	h.want(proxies, "PENDING", "proxies", "nodes", 0, "sync", 0, "state")
}

func TestServiceIsMerged(t *testing.T) {
	h := newHub(t)
	data, errs := h.ask(contract(t)["Service"], map[string]any{"hostname": "web.shop.svc.cluster.local", "namespace": "shop"})
	if errs != "" {
		t.Fatal(errs)
	}
	service := data["service"]
	h.want(service, "CLIENT_SIDE_LB", "resolution")
	h.want(service, []any{
		map[string]any{"clusterID": "c1", "addresses": []any{"10.1.0.1"}}, map[string]any{"clusterID": "c2", "addresses": []any{"10.2.0.0/24"}},
	}, "clusterVIPs")
	h.want(service, []any{map[string]any{
		"name": "http", "number": float64(80), "protocol": "HTTP", "clusterIDs": []any{"c1", "c2"},
		"names": []any{map[string]any{"clusterID": "c1", "name": "http"}, map[string]any{"clusterID": "c2", "name": "http"}},
	}}, "ports")
	h.want(service, "PORT_PROTOCOL", "conflicts", 0, "kind")
	h.want(service, []any{"c1", "c2"}, "conflicts", 0, "clusterIDs")
	h.want(service, float64(3), "endpoints", "totalCount")
	h.want(service, "10.0.0.1", "endpoints", "nodes", 0, "address")
	h.want(service, float64(8080), "endpoints", "nodes", 0, "ports", 0, "number")
	h.want(service, float64(1), "endpoints", "nodes", 0, "weight")
	h.want(service, []any{map[string]any{"key": "v", "value": "2"}}, "endpoints", "nodes", 2, "labels")
	h.want(service, map[string]any{"region": "r1", "zone": "z1", "subZone": ""}, "endpoints", "nodes", 0, "locality")

	again, _ := newHub(t).ask(contract(t)["Service"], map[string]any{"hostname": "web.shop.svc.cluster.local", "namespace": "shop"})
	if version := at(service, "version"); version == "" || version != at(again["service"], "version") {
		t.Errorf("equal content has the versions %v and %v", version, at(again["service"], "version"))
	}
	other, _ := h.ask(`{service(hostname:"s001.load.svc.cluster.local"){version}}`, nil)
	if at(other, "service", "version") == at(service, "version") {
		t.Error("other content has the same version")
	}
}

func TestServiceByHostnameAlone(t *testing.T) {
	h := newHub(t)
	one, errs := h.ask(`{service(hostname:"s001.load.svc.cluster.local"){namespace}}`, nil)
	h.want(one, "load", "service", "namespace")
	if errs != "" {
		t.Error(errs)
	}
	if _, errs := h.ask(`{service(hostname:"web.shop.svc.cluster.local"){id}}`, nil); !strings.Contains(errs, "BAD_USER_INPUT") ||
		!strings.Contains(errs, "shop") || !strings.Contains(errs, "other") {
		t.Errorf("a hostname of two namespaces is answered with %s", errs)
	}
	if none, errs := h.ask(`{service(hostname:"no.such"){id}}`, nil); errs != "" || none["service"] != nil {
		t.Errorf("an unknown service is answered with %v %s", none, errs)
	}
}

func TestFilters(t *testing.T) {
	h := newHub(t)
	for filter, want := range map[string]float64{
		`{}`: 122, `{clusterID:"c1"}`: 1, `{clusterID:"c2"}`: 122, `{network:"n1"}`: 0, `{network:"default"}`: 121, `{namespace:"other"}`: 1,
		`{hostnameContains:"s01"}`: 10, `{provider:CONSUL}`: 0, `{provider:KUBERNETES,clusterID:"c1"}`: 1, `{hasConflicts:true}`: 1, `{hasConflicts:false}`: 121,
	} {
		data, errs := h.ask("{services(filter:"+filter+"){totalCount nodes{hostname}}}", nil)
		if got := at(data, "services", "totalCount"); got != want || errs != "" {
			t.Errorf("%s finds %v, want %v %s", filter, got, want, errs)
		}
	}
	for filter, want := range map[string]float64{
		`{}`: 3, `{clusterID:"c2"}`: 1, `{network:"default"}`: 3, `{locality:{zone:"z1"}}`: 2, `{locality:{region:"r1",zone:"z2",subZone:""}}`: 1,
		`{labels:[{key:"v",value:"1"}]}`: 2, `{labels:[{key:"v",value:"1"},{key:"w",value:"1"}]}`: 0, `{health:HEALTHY}`: 3, `{health:DRAINING}`: 0,
	} {
		data, errs := h.ask(`{service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){endpoints(filter:`+filter+"){totalCount}}}", nil)
		if got := at(data, "service", "endpoints", "totalCount"); got != want || errs != "" {
			t.Errorf("%s finds %v, want %v %s", filter, got, want, errs)
		}
	}
}

func TestPagesFollowOneAnother(t *testing.T) {
	h := newHub(t)
	for _, walk := range []struct{ size, cursor, info, next string }{
		{"first", "after", "hasNextPage", "endCursor"}, {"last", "before", "hasPreviousPage", "startCursor"},
	} {
		query := fmt.Sprintf("query($c:String){services(%s:25,%s:$c){pageInfo{%s %s} edges{cursor node{hostname namespace}}}}", walk.size, walk.cursor, walk.info, walk.next)
		seen, cursor := map[string]bool{}, any(nil)
		for range 5 {
			data, errs := h.ask(query, map[string]any{"c": cursor})
			if errs != "" {
				t.Fatal(errs)
			}
			for _, edge := range at(data, "services", "edges").([]any) {
				seen[fmt.Sprint(at(edge, "node"))] = true
			}
			cursor = at(data, "services", "pageInfo", walk.next)
			if more := at(data, "services", "pageInfo", walk.info); more != (len(seen) < 122) {
				t.Errorf("%s after %d: %s is %v", walk.size, len(seen), walk.info, more)
			}
		}
		if len(seen) != 122 {
			t.Errorf("five pages by %s show %d services", walk.size, len(seen))
		}
	}
}

func TestBG08ForeignCursorsAreRefused(t *testing.T) {
	h := newHub(t)
	data, _ := h.ask("{clusters(first:1){pageInfo{endCursor}}}", nil)
	for _, cursor := range []any{"", "x", "AAAA", strings.Repeat("A", 9000), at(data, "clusters", "pageInfo", "endCursor")} {
		if _, errs := h.ask("query($c:String){services(after:$c){totalCount}}", map[string]any{"c": cursor}); !strings.Contains(errs, "BAD_USER_INPUT") {
			t.Errorf("the cursor %.20v is answered with %s", cursor, errs)
		}
	}
}

func TestNodesAreFoundAgain(t *testing.T) {
	h := newHub(t)
	data, errs := h.ask("{clusters{nodes{id}} services(last:1){nodes{id}} proxies{nodes{id}}}", nil)
	if errs != "" {
		t.Fatal(errs)
	}
	for list, kind := range map[string]string{"clusters": "Cluster", "services": "Service", "proxies": "Proxy"} {
		id := at(data, list, "nodes", 0, "id")
		found, errs := h.ask("query($id:ID!){node(id:$id){__typename id}}", map[string]any{"id": id})
		h.want(found, map[string]any{"__typename": kind, "id": id}, "node")
		if errs != "" {
			t.Error(errs)
		}
	}
	for _, id := range []string{"", "x", model.ID("Secret", "a"), model.ID("Service", "a"), model.ID("Cluster", "c9")} {
		if found, errs := h.ask("query($id:ID!){node(id:$id){id}}", map[string]any{"id": id}); errs != "" || found["node"] != nil {
			t.Errorf("the ID %q is answered with %v %s", id, found, errs)
		}
	}
}

func TestClusterShowsItsStateAndProblems(t *testing.T) {
	h := newHub(t)
	data, errs := h.ask(`{hub{version clusterID snapshotVersion} cluster(clusterID:"c2"){precedence status{lastKnownGood lastKnownGoodAge}
	  problems{totalCount nodes{code object field message}} endpoints(last:2){totalCount nodes{address}} services(first:2,filter:{namespace:"shop"}){nodes{hostname}}}
	  gone:cluster(clusterID:"c9"){id} c1:cluster(clusterID:"c1"){precedence endpoints{totalCount nodes{address}}}}`, nil)
	if errs != "" {
		t.Fatal(errs)
	}
	h.want(data, map[string]any{"version": "test", "clusterID": "hub", "snapshotVersion": at(data, "hub", "snapshotVersion")}, "hub")
	h.want(data, float64(100), "cluster", "precedence")
	h.want(data, "1m30s", "cluster", "status", "lastKnownGoodAge")
	h.want(data, map[string]any{"code": "PORT_RANGE", "object": "Service load/x", "field": "spec.ports[0]", "message": "port 70000"}, "cluster", "problems", "nodes", 0)
	h.want(data, "10.0.1.1", "cluster", "endpoints", "nodes", 1, "address")
	h.want(data, "web.shop.svc.cluster.local", "cluster", "services", "nodes", 0, "hostname")
	h.want(data, nil, "gone")
	h.want(data, []any{map[string]any{"address": "10.0.0.1"}, map[string]any{"address": "10.0.0.2"}}, "c1", "endpoints", "nodes")
}

func TestEditorsIntrospectionIsAnswered(t *testing.T) {
	query, err := os.ReadFile(filepath.Join("transport", "testdata", "introspection.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	data, errs := newHub(t).ask(string(query), nil)
	if errs != "" || at(data, "__schema", "queryType", "name") != "Query" {
		t.Errorf("got %.300v %s", data, errs)
	}
}
