package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// sortedBy selects the field that each order of a list sorts by; its name in answers is "by".
var sortedBy = map[string]map[string]string{
	"services":      {"HOSTNAME": "by:hostname", "ENDPOINTS": "by:endpoints{totalCount}", "CONFLICTS": "by:conflicts{kind}"},
	"proxies":       {"NODE_ID": "by:nodeID", "CONNECTED_AT": "by:connectedAt", "SYNC_STATE": "by:syncState"},
	"clusters":      {"CLUSTER_ID": "by:clusterID", "PHASE": "by:status{phase}", "SERVICES": "by:services{totalCount}", "ENDPOINTS": "by:endpoints{totalCount}"},
	"networks":      {"NETWORK_ID": "by:networkID", "CLUSTERS": "by:clusterIDs", "GATEWAYS": "by:gateways{address}"},
	"configObjects": {"NAME": "by:name", "NAMESPACE": "by:namespace", "REVISION": "by:revision"},
	"history":       {"REVISION": "by:revision", "AUTHOR": "by:author"},
}

// place is what an order of a list sorts the answer by.
func place(t *testing.T, by any) string {
	t.Helper()
	switch by := by.(type) {
	case nil:
		return ""
	case string:
		if state := slices.Index(worse, by); state >= 0 {
			return fmt.Sprint(state)
		}
		return by
	case []any:
		return fmt.Sprintf("%9d", len(by))
	case map[string]any:
		if phase, is := by["phase"].(string); is {
			return fmt.Sprintf("%9d", slices.Index(model.AllClusterPhase, model.ClusterPhase(phase)))
		}
		return fmt.Sprintf("%9.0f", by["totalCount"])
	default:
		t.Fatalf("%v", by)
		return ""
	}
}

var worse = []string{"NOT_REQUESTED", "SYNCED", "PENDING", "NACKED"}

// TestU58ListsAreSorted: each list with an order has every node once, page by page, sorted by each of the fields that
// the schema has for it, and turned around if it descends.
func TestU58ListsAreSorted(t *testing.T) {
	all := proxies()
	for i := range 5 {
		all.Connect(fleet.Proxy{NodeID: fmt.Sprint("p", 5-i), Cluster: "c1", ConnectedAt: time.Date(2026, 11, 21, 11, 0, i%2, 0, time.UTC)})
	}
	c := newConfigured(t, func(o *graph.Options) { o.Snapshots, o.Fleet = &source{bridged(t)}, all })
	for i := range 5 {
		c.apply(route([]string{"shop", "load"}[i%2], fmt.Sprint("r", 5-i), "x"))
	}
	checked := 0
	for _, list := range publicSchema(t).Query.Fields {
		argument := list.Arguments.ForName("orderBy")
		if argument == nil {
			continue
		}
		of := publicSchema(t).Types[publicSchema(t).Types[argument.Type.Name()].Fields.ForName("field").Type.Name()]
		for _, field := range of.EnumValues {
			checked++
			by := sortedBy[list.Name][field.Name]
			if by == "" {
				t.Errorf("%s can be sorted by %s, and this test does not know what that is", list.Name, field.Name)
				continue
			}
			walk := func(direction string) (ids, places []string) {
				for after := "null"; ; {
					data := at(c.answer(fmt.Sprintf("{list:%s(first:3,after:%s,orderBy:{field:%s,direction:%s}){totalCount nodes{id %s} pageInfo{hasNextPage endCursor}}}",
						list.Name, after, field.Name, direction, by), nil), "list")
					for _, node := range at(data, "nodes").([]any) {
						ids, places = append(ids, at(node, "id").(string)), append(places, place(t, at(node, "by")))
					}
					if at(data, "pageInfo", "hasNextPage") != true {
						if total := at(data, "totalCount"); total != float64(len(ids)) {
							t.Errorf("%s by %s %s has %d nodes, of %v", list.Name, field.Name, direction, len(ids), total)
						}
						return ids, places
					}
					after = fmt.Sprintf("%q", at(data, "pageInfo", "endCursor"))
				}
			}
			ids, places := walk("ASC")
			down, _ := walk("DESC")
			slices.Reverse(down)
			if !slices.Equal(ids, down) {
				t.Errorf("%s by %s is %v, and turned around %v", list.Name, field.Name, ids, down)
			}
			if !slices.IsSorted(places) && !strings.HasSuffix(by, "hostname") && !strings.HasSuffix(by, "nodeID") {
				t.Errorf("%s by %s is %q", list.Name, field.Name, places)
			}
			whole := at(c.answer("{list:"+list.Name+"(first:500){nodes{id}}}", nil), "list", "nodes").([]any)
			slices.Sort(ids)
			if len(slices.Compact(ids)) != len(whole) || len(whole) < 2 {
				t.Errorf("%s by %s has %d nodes, want %d", list.Name, field.Name, len(ids), len(whole))
			}
		}
	}
	if checked < 18 {
		t.Errorf("%d orders were checked", checked)
	}
}

// TestU58ClustersAreFiltered by phase, kind of source and network.
func TestU58ClustersAreFiltered(t *testing.T) {
	h := newHub(t)
	for filter, want := range map[string]string{
		"{}": "c1 c2", "{phase: READY}": "c1", "{phase: STALE}": "c2", "{phase: HELD}": "", "{provider: KUBERNETES}": "c1 c2", "{provider: CONSUL}": "",
		`{networkID: "n2"}`: "c2", `{networkID: "n2", phase: READY}`: "", "{phase: null}": "c1 c2",
	} {
		var found []string
		for _, n := range at(h.answer("{clusters(filter: "+filter+"){nodes{clusterID}}}", nil), "clusters", "nodes").([]any) {
			found = append(found, at(n, "clusterID").(string))
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s lists %q, want %q", filter, got, want)
		}
	}
}

// TestU58EndpointsOfAllServicesHavePages: from the front and from the back, filtered or not, pages have the endpoints of all
// services in one order.
func TestU58EndpointsOfAllServicesHavePages(t *testing.T) {
	h := newHub(t)
	for _, l := range []list{
		{"endpoints", "{", "}", "id"},
		{"gateways", "{", "}", "id"},
	} {
		l.showsEveryNodeOnce(hubOver(t, bridged(t), proxies()))
	}
	var byService []any
	for _, s := range at(h.answer(`{services(first:500){nodes{endpoints(first:10){nodes{id}}}}}`, nil), "services", "nodes").([]any) {
		byService = append(byService, at(s, "endpoints", "nodes").([]any)...)
	}
	all := at(h.answer(`{endpoints(first:500){nodes{id}}}`, nil), "endpoints", "nodes").([]any)
	if fmt.Sprint(all) != fmt.Sprint(byService) || len(all) != 123 {
		t.Errorf("there are %d endpoints, of services %d", len(all), len(byService))
	}
	of := h.answer(`{endpoints(last:2,filter:{networkID:"n1"}){totalCount nodes{address} pageInfo{hasPreviousPage}}}`, nil)
	h.want(of, map[string]any{
		"totalCount": 2.0, "nodes": []any{map[string]any{"address": "10.0.0.1"}, map[string]any{"address": "10.0.0.2"}},
		"pageInfo": map[string]any{"hasPreviousPage": false},
	}, "endpoints")
}
