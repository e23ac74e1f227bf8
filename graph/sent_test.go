package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

const clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// inspector has resources of the size for every stream.
type inspector struct{ size int }

func (i inspector) Sent(_ *federation.Snapshot, _ *fleet.Value, _ fleet.Key, typeURL string) []fleet.SentResource {
	var all []fleet.SentResource
	for n := range 40 {
		name := fmt.Sprintf("r%02d", n)
		of := fleet.Content{Version: "v1", Size: i.size, JSON: func() ([]byte, error) { return fmt.Appendf(nil, "{%q: %q}", typeURL, name), nil }}
		all = append(all, fleet.SentResource{Name: name, Sent: of, Acked: of})
	}
	all[2].Causes = func() []federation.ObjectKey { return []federation.ObjectKey{routeKey("shop", "cart")} }
	all[3].Acked = fleet.Content{}
	return all
}

func inspecting(t *testing.T, size int) hub {
	return hubWith(t, graph.Options{Snapshots: &source{fixture(t)}, Fleet: proxies(), Inspector: inspector{size}})
}

const configOf = `query($n:String!,$t:[String!],$a:String,$l:Int,$name:String){proxy(nodeID:$n){config(types:$t){typeUrl
	resources(after:$a,last:$l,name:$name){totalCount pageInfo{hasNextPage hasPreviousPage endCursor} nodes{name versionSent versionAcked sent acked}}}}}`

func TestR44ProxyConfigIsAnswered(t *testing.T) {
	h := inspecting(t, 10)
	data := h.answer(configOf, map[string]any{"n": sidecarID, "t": []string{clusterType}, "name": "r03"})
	h.want(data, map[string]any{"typeUrl": clusterType, "resources": map[string]any{
		"totalCount": 1.0, "pageInfo": map[string]any{"hasNextPage": false, "hasPreviousPage": false, "endCursor": at(data, "proxy", "config", 0,
			"resources", "pageInfo", "endCursor")},
		"nodes": []any{map[string]any{
			"name": "r03", "versionSent": "v1", "versionAcked": nil,
			"sent": fmt.Sprintf("{%q: %q}", clusterType, "r03"), "acked": nil,
		}},
	}}, "proxy", "config", 0)
	h.want(h.answer(configOf, map[string]any{"n": "sidecar~10.9.9.9~x.y~y"}), nil, "proxy")
	h.want(h.answer(configOf, map[string]any{"n": sidecarID, "t": []string{"type.googleapis.com/x"}}), []any{}, "proxy", "config")
}

// TestR44ContractOfProxyConfigIsAnswered word for word.
func TestR44ContractOfProxyConfigIsAnswered(t *testing.T) {
	data, errs := inspecting(t, 10).ask(contract(t)["ProxyConfig"], map[string]any{"nodeID": sidecarID, "types": []string{clusterType}})
	if errs != "" {
		t.Fatal(errs)
	}
	for i, want := range [][]any{
		2: {map[string]any{"group": networking, "kind": "VirtualService", "namespace": "shop", "name": "cart"}},
		3: {},
	} {
		if node := at(data, "proxy", "config", 0, "resources", "nodes", i); i >= 2 && fmt.Sprint(at(node, "causes")) != fmt.Sprint(want) {
			t.Errorf("%v has the causes %v, want %v", at(node, "name"), at(node, "causes"), want)
		}
	}
}

// TestR44ProxyConfigIsBoundedInBytes: pages of large resources are short, and lead to the rest.
func TestR44ProxyConfigIsBoundedInBytes(t *testing.T) {
	h := inspecting(t, 100<<10)
	seen, after := 0, any(nil)
	for {
		data := h.answer(configOf, map[string]any{"n": sidecarID, "t": []string{clusterType}, "a": after})
		of := at(data, "proxy", "config", 0, "resources")
		nodes := at(of, "nodes").([]any)
		if len(nodes) == 0 || len(nodes) > 6 {
			t.Fatalf("a page has %d resources of 200 KiB", len(nodes))
		}
		for _, n := range nodes {
			h.want(n, fmt.Sprintf("r%02d", seen), "name")
			seen++
		}
		if at(of, "pageInfo", "hasNextPage") == false {
			break
		}
		after = at(of, "pageInfo", "endCursor")
	}
	if seen != 40 {
		t.Errorf("the pages have %d resources, want 40", seen)
	}
	end := h.answer(configOf, map[string]any{"n": sidecarID, "t": []string{clusterType}, "l": 20})
	h.want(end, "r39", "proxy", "config", 0, "resources", "nodes", 4, "name")
	if _, errs := inspecting(t, 9<<20).ask(configOf, map[string]any{"n": sidecarID, "t": []string{clusterType}}); !strings.Contains(errs,
		"BAD_USER_INPUT") || !strings.Contains(errs, "16 MiB") {
		t.Errorf("an answer that is too large has %s", errs)
	}
}
