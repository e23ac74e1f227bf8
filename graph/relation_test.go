package graph_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// TestMeshIsWalkedInBothDirections: from an endpoint to its cluster, network, gateways
// and service and back, from a proxy to its services, from a network to its clusters.
func TestMeshIsWalkedInBothDirections(t *testing.T) {
	h := hubOver(t, bridged(t), proxies())
	const query = `query($proxy:String!){
	  service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){clusterVIPs{cluster{clusterID}} shards{cluster{clusterID}} ports{names{cluster{clusterID}}}
	    endpoints(last:1){nodes{service{hostname endpoints{totalCount}} cluster{clusterID endpoints(first:1){totalCount nodes{service{hostname}}}}
	      network{networkID clusters{nodes{clusterID network{networkID}}}} gateways{address networkID network{networkID}}}}}
	  proxy(nodeID:$proxy){cluster{clusterID} network{networkID} services{totalCount nodes{hostname namespace}}}
	  none:proxy(nodeID:"` + routerID + `"){network{networkID} services(filter:{namespace:"x"}){totalCount}}
	  hub{clusterID cluster{clusterID}}
	  overview{proxies{byCluster{clusterID cluster{clusterID} count}} endpoints{byNetwork{networkID network{networkID} count}}}}`
	data := h.answer(query, map[string]any{"proxy": sidecarID})
	h.want(data, map[string]any{
		"service": map[string]any{"hostname": "web.shop.svc.cluster.local", "endpoints": map[string]any{"totalCount": 3.0}},
		"cluster": map[string]any{"clusterID": "c2", "endpoints": map[string]any{
			"totalCount": 121.0, "nodes": []any{map[string]any{"service": map[string]any{"hostname": "s000.load.svc.cluster.local"}}},
		}},
		"network": map[string]any{"networkID": "n2", "clusters": map[string]any{"nodes": []any{
			map[string]any{"clusterID": "c2", "network": map[string]any{"networkID": "n2"}},
		}}},
		"gateways": []any{
			map[string]any{"address": "192.0.2.1:15443", "networkID": "n2", "network": map[string]any{"networkID": "n2"}},
			map[string]any{"address": "192.0.2.2:15443", "networkID": "n2", "network": map[string]any{"networkID": "n2"}},
		},
	}, "service", "endpoints", "nodes", 0)
	both := []any{map[string]any{"cluster": map[string]any{"clusterID": "c1"}}, map[string]any{"cluster": map[string]any{"clusterID": "c2"}}}
	for _, path := range [][]any{{"service", "clusterVIPs"}, {"service", "shards"}, {"service", "ports", 0, "names"}} {
		h.want(data, both, path...)
	}
	h.want(data, map[string]any{
		"cluster": map[string]any{"clusterID": "c1"}, "network": map[string]any{"networkID": "n1"},
		"services": map[string]any{
			"totalCount": 1.0,
			"nodes":      []any{map[string]any{"hostname": "web.shop.svc.cluster.local", "namespace": "shop"}},
		},
	}, "proxy")
	h.want(data, map[string]any{"network": nil, "services": map[string]any{"totalCount": 0.0}}, "none")
	h.want(data, map[string]any{"clusterID": "hub", "cluster": nil}, "hub")
	h.want(data, map[string]any{"clusterID": "c2", "cluster": map[string]any{"clusterID": "c2"}, "count": 2.0},
		"overview", "proxies", "byCluster", 1)
	h.want(data, map[string]any{"networkID": "n2", "network": map[string]any{"networkID": "n2"}, "count": 121.0},
		"overview", "endpoints", "byNetwork", 1)
}

// TestObjectStandsBesideItsID: who reads the name of a cluster, a network or a proxy
// gets to the object from there.
func TestObjectStandsBesideItsID(t *testing.T) {
	schema := publicSchema(t)
	objects := map[string]string{"clusterID": "cluster", "networkID": "network", "nodeID": "proxy"}
	for _, definition := range schema.Types {
		if definition.BuiltIn || definition.Kind != "OBJECT" ||
			slices.Contains([]string{"Cluster", "Network", "Proxy", "DetachClusterPayload"}, definition.Name) {
			continue
		}
		for id, name := range objects {
			if definition.Fields.ForName(id) == nil {
				continue
			}
			object := definition.Fields.ForName(name)
			if object == nil || object.Type.NonNull || object.Type.Name() != strings.ToUpper(name[:1])+name[1:] {
				t.Errorf("%s.%s has no nullable object %s beside it", definition.Name, id, name)
			}
		}
	}
}

// TestNamesOfFieldsFollowOneRule: times end in At, and nothing is called by a name of
// an earlier version of the contract.
func TestNamesOfFieldsFollowOneRule(t *testing.T) {
	for _, definition := range publicSchema(t).Types {
		if definition.BuiltIn {
			continue
		}
		for _, field := range definition.Fields {
			where := definition.Name + "." + field.Name
			if field.Type.Name() == "DateTime" && !strings.HasSuffix(field.Name, "At") && field.Name != "at" && field.Name != "since" {
				t.Errorf("the time %s does not end in At", where)
			}
			if slices.Contains([]string{"network", "cluster", "observer"}, field.Name) && field.Type.Name() == "String" &&
				field.Directives.ForName("deprecated") == nil {
				t.Errorf("the name %s does not end in ID", where)
			}
			if field.Name == "version" && definition.Name != "Hub" {
				t.Errorf("%s is called version, which is that of the program", where)
			}
		}
	}
}

// TestNodesAreFoundByTheirIDs: every kind of them, in the order of the IDs; one that
// cannot be read leaves the others alone.
func TestNodesAreFoundByTheirIDs(t *testing.T) {
	c := newConfigured(t, func(o *graph.Options) {
		o.Snapshots, o.Fleet = &source{bridged(t)}, proxies()
	})
	c.apply(route("shop", "cart", "a"))
	data := c.answer(`{clusters(first:1){nodes{id}} network(networkID:"n2"){id gateways{id}} proxies(first:1){nodes{id}} configObjects(filter:{name:"cart"}){nodes{id}}
	  history(first:1){nodes{id}} service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){id endpoints(first:1){nodes{id}}}}`, nil)
	var ids []any
	for _, path := range [][]any{
		{"clusters", "nodes", 0},
		{"network"},
		{"network", "gateways", 1},
		{"proxies", "nodes", 0},
		{"configObjects", "nodes", 0},
		{"history", "nodes", 0},
		{"service"},
		{"service", "endpoints", "nodes", 0},
	} {
		ids = append(ids, at(data, append(path, "id")...))
	}
	ids = append(ids, "none", ids[0])
	const query = `query($ids:[ID!]!){nodes(ids:$ids){__typename id}}`
	got := at(c.answer(query, map[string]any{"ids": ids}), "nodes").([]any)
	for i, kind := range []any{
		"Cluster", "Network", "NetworkGateway", "Proxy", "ConfigObject", "ConfigRevision",
		"Service", "Endpoint", nil, "Cluster",
	} {
		if at(got[i], "__typename") != kind || kind != nil && at(got[i], "id") != ids[i] {
			t.Errorf("%v is %v, want the %v", ids[i], got[i], kind)
		}
		if kind != nil {
			c.want(c.answer(`query($id:ID!){node(id:$id){id}}`, map[string]any{"id": ids[i]}), ids[i], "node", "id")
		}
	}
	c.engine.store.Fail(config.ErrUnavailable)
	partly, errs := c.ask(query, map[string]any{"ids": ids})
	if at(partly, "nodes", 5) != nil || at(partly, "nodes", 6, "id") != ids[6] || !strings.Contains(errs, `"path":["nodes",5]`) {
		t.Errorf("without the store it answers %v %s", partly, errs)
	}
	if _, errs := c.ask(query, map[string]any{"ids": make([]string, 501)}); !strings.Contains(errs, "ids: there are 501 IDs") {
		t.Errorf("501 IDs get %s", errs)
	}
}

// TestListsAreOrdered by what a client wants, page by page, in both directions.
func TestListsAreOrdered(t *testing.T) {
	h := newHub(t)
	h.fleet.Connect(fleet.Proxy{
		NodeID: "sidecar~10.0.0.3~b.shop~shop", Type: "sidecar", Cluster: "c1", ConnectedAt: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
	})
	walk := func(query, field, direction string) (all []string) {
		variables := map[string]any{"by": map[string]any{"field": field, "direction": direction}, "after": nil}
		for {
			data := at(h.answer(query, variables), "list")
			for _, node := range at(data, "nodes").([]any) {
				all = append(all, fmt.Sprint(node))
			}
			if at(data, "pageInfo", "hasNextPage") != true {
				if total := at(data, "totalCount"); total != float64(len(all)) {
					t.Errorf("by %s %s there are %d, of %v", field, direction, len(all), total)
				}
				return all
			}
			variables["after"] = at(data, "pageInfo", "endCursor")
		}
	}
	const (
		services = `query($by:ServiceOrder,$after:String){list:services(first:50,after:$after,orderBy:$by){totalCount pageInfo{hasNextPage endCursor} nodes{%s hostname namespace}}}`
		streams  = `query($by:ProxyOrder,$after:String){list:proxies(first:2,after:$after,orderBy:$by){totalCount pageInfo{hasNextPage endCursor} nodes{%s nodeID}}}`
	)
	for field, query := range map[string]string{
		"HOSTNAME": fmt.Sprintf(services, ""), "ENDPOINTS": fmt.Sprintf(services, "a:endpoints{totalCount}"),
		"CONFLICTS": fmt.Sprintf(services, "conflicts{kind}"),
		"NODE_ID":   fmt.Sprintf(streams, "a:nodeID"), "CONNECTED_AT": fmt.Sprintf(streams, "a:connectedAt"),
		"SYNC_STATE": fmt.Sprintf(streams, "syncState"),
	} {
		up, down := walk(query, field, "ASC"), walk(query, field, "DESC")
		slices.Reverse(down)
		if !slices.Equal(up, down) {
			t.Errorf("by %s: up it is %v, down reversed %v", field, up, down)
		}
		if strings.Contains(query, "a:") && !slices.IsSorted(up) {
			t.Errorf("by %s it is %v", field, up)
		}
	}
	if worst := walk(fmt.Sprintf(streams, "syncState"), "SYNC_STATE", "DESC"); !strings.Contains(worst[0], string(model.SyncStateNacked)) {
		t.Errorf("the worst is %s", worst[0])
	}
	cursor := at(h.answer(`{services(first:1){pageInfo{endCursor}}}`, nil), "services", "pageInfo", "endCursor")
	if _, errs := h.ask(`query($c:String){services(after:$c,orderBy:{field:ENDPOINTS}){totalCount}}`,
		map[string]any{"c": cursor}); !strings.Contains(errs, "after: ") {
		t.Errorf("the cursor of another order gets %s", errs)
	}
}

// TestSchemaIsWalkedInBothDirections: the fields that lead from one kind of node to
// another, and back.
func TestSchemaIsWalkedInBothDirections(t *testing.T) {
	schema := publicSchema(t)
	for path, want := range map[string]string{
		"Endpoint cluster":                                         "Cluster",
		"Cluster endpoints nodes":                                  "Endpoint",
		"Endpoint network":                                         "Network",
		"Network clusters nodes endpoints nodes":                   "Endpoint",
		"Endpoint gateways":                                        "NetworkGateway",
		"NetworkGateway network":                                   "Network",
		"Network gateways":                                         "NetworkGateway",
		"Endpoint service":                                         "Service",
		"Service endpoints nodes":                                  "Endpoint",
		"Network clusters nodes":                                   "Cluster",
		"Cluster network":                                          "Network",
		"Cluster services nodes":                                   "Service",
		"Service shards cluster":                                   "Cluster",
		"Proxy services nodes":                                     "Service",
		"Proxy cluster":                                            "Cluster",
		"Proxy network":                                            "Network",
		"ConfigObject status proxies nodes proxy":                  "Proxy",
		"Proxy config resources nodes causes current":              "ConfigObject",
		"ConfigRevision changes object current":                    "ConfigObject",
		"ApplyPayload rollout proxies nodes proxy":                 "Proxy",
		"Explanation endpoints cause current":                      "ConfigObject",
		"Change configObjects object current status proxies nodes": "ProxyRollout",
	} {
		steps := strings.Fields(path)
		at := schema.Types[steps[0]]
		for _, name := range steps[1:] {
			field := at.Fields.ForName(name)
			if field == nil {
				t.Fatalf("%s: %s has no field %s", path, at.Name, name)
			}
			at = schema.Types[field.Type.Name()]
		}
		if at.Name != want {
			t.Errorf("%s is a %s, want a %s", path, at.Name, want)
		}
	}
}

// connectMany connects proxies of both clusters, some of them twice, at addresses of endpoints and elsewhere.
func connectMany(all *fleet.Fleet) {
	for i := range 40 {
		cluster := federation.ClusterID(fmt.Sprintf("c%d", i%3+1))
		of := fleet.Proxy{NodeID: fmt.Sprintf("p%02d", 39-i/2), Type: "sidecar", Cluster: cluster, Namespace: []string{"shop", "load"}[i%2]}
		for _, text := range []string{fmt.Sprintf("10.0.0.%d", i%4), fmt.Sprintf("10.2.0.%d", i)}[:1+i%2] {
			of.Addresses = append(of.Addresses, netip.MustParseAddr(text))
		}
		all.Connect(of)
	}
}

// TestU32ProxiesAreFoundFromWhereTheyAre: the proxies of a cluster, of a network and of a service are those
// that lead there, in the order of all proxies, in pages, and as filters say.
func TestU32ProxiesAreFoundFromWhereTheyAre(t *testing.T) {
	connectedProxies := proxies()
	connectMany(connectedProxies)
	h := hubOver(t, bridged(t), connectedProxies)
	const shown = `nodes{id} totalCount`
	inNetwork, inCluster, ofService := map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, n := range at(h.answer(`{proxies(first:100){nodes{id clusterID networkID services(first:10){nodes{hostname namespace}}}}}`, nil),
		"proxies", "nodes").([]any) {
		id := at(n, "id").(string)
		for of, name := range map[*map[string][]string]any{&inNetwork: at(n, "networkID"), &inCluster: at(n, "clusterID")} {
			if name, is := name.(string); is {
				(*of)[name] = append((*of)[name], id)
			}
		}
		for _, s := range at(n, "services", "nodes").([]any) {
			name := fmt.Sprint(at(s, "namespace"), "/", at(s, "hostname"))
			ofService[name] = append(ofService[name], id)
		}
	}
	if len(inNetwork["n2"]) == 0 || len(inCluster["c1"]) < 10 || len(ofService["shop/web.shop.svc.cluster.local"]) == 0 {
		t.Fatalf("there are no proxies: %v %v %v", inNetwork, inCluster, ofService)
	}
	ids := func(page any) (all []string) {
		for _, n := range at(page, "nodes").([]any) {
			all = append(all, at(n, "id").(string))
		}
		return all
	}
	same := func(what string, page any, want []string) {
		t.Helper()
		if got := ids(page); !slices.Equal(got, want) || at(page, "totalCount") != float64(len(want)) {
			t.Errorf("%s has the proxies %v, of %v, want %v", what, got, at(page, "totalCount"), want)
		}
	}
	data := h.answer(`{clusters{nodes{clusterID proxies(first:80){`+shown+`}}} networks{nodes{networkID proxies(first:80){`+shown+`}}}
	  services(first:30){nodes{hostname namespace proxies(first:80){`+shown+`}}}}`, nil)
	for _, n := range at(data, "clusters", "nodes").([]any) {
		same("the cluster "+at(n, "clusterID").(string), at(n, "proxies"), inCluster[at(n, "clusterID").(string)])
	}
	for _, n := range at(data, "networks", "nodes").([]any) {
		same("the network "+at(n, "networkID").(string), at(n, "proxies"), inNetwork[at(n, "networkID").(string)])
	}
	for _, n := range at(data, "services", "nodes").([]any) {
		name := fmt.Sprint(at(n, "namespace"), "/", at(n, "hostname"))
		same("the service "+name, at(n, "proxies"), ofService[name])
	}
	page := h.answer(`{cluster(clusterID:"c1"){proxies(first:3){edges{cursor node{id}} pageInfo{hasNextPage}}}}`, nil)
	next := h.answer(`query($after:String){cluster(clusterID:"c1"){proxies(first:2,after:$after,filter:{type:SIDECAR}){`+shown+`}}}`,
		map[string]any{"after": at(page, "cluster", "proxies", "edges", 2, "cursor")})
	if got, want := ids(at(next, "cluster", "proxies")), inCluster["c1"][3:5]; !slices.Equal(got, want) {
		t.Errorf("the page after the first three is %v, want %v", got, want)
	}
	load := h.answer(`{all:proxies(first:500,filter:{clusterID:"c2",namespace:"load"}){`+shown+`}
	  cluster(clusterID:"c2"){proxies(first:500,filter:{namespace:"load"}){`+shown+`} none:proxies(filter:{clusterID:"c1"}){`+shown+`}}}`, nil)
	same("the namespace of a cluster", at(load, "cluster", "proxies"), ids(at(load, "all")))
	same("a cluster of another one", at(load, "cluster", "none"), nil)
}

// TestU32ProxiesOfAClusterHavePages: pages of a cluster's proxies, from the front and from the back, filtered or not, have the
// proxies of the whole list in its order.
func TestU32ProxiesOfAClusterHavePages(t *testing.T) {
	connectedProxies := proxies()
	connectMany(connectedProxies)
	h := hubOver(t, bridged(t), connectedProxies)
	for _, filter := range []string{"", `filter: {networkID: "n1", type: SIDECAR}, `} {
		page := func(arguments string) any {
			return at(h.answer(`{cluster(clusterID: "c1") {
			  other: proxies(first: 1, filter: {networkID: "none"}) { totalCount }
			  proxies(`+filter+arguments+`) { nodes { id } totalCount pageInfo { startCursor endCursor hasPreviousPage hasNextPage } } }}`, nil),
				"cluster", "proxies")
		}
		all := at(page("first: 500"), "nodes").([]any)
		if len(all) < 10 {
			t.Fatalf("there are %d proxies", len(all))
		}
		for _, way := range []struct{ size, place, cursor, more, back string }{
			{"first", "after", "endCursor", "hasNextPage", "hasPreviousPage"},
			{"last", "before", "startCursor", "hasPreviousPage", "hasNextPage"},
		} {
			var walked []any
			arguments := way.size + ": 3"
			for more := true; more; {
				found := page(arguments)
				nodes := at(found, "nodes").([]any)
				if way.size == "first" {
					walked = append(walked, nodes...)
				} else {
					walked = append(slices.Clone(nodes), walked...)
				}
				if back := at(found, "pageInfo", way.back).(bool); back != (len(walked) > len(nodes)) {
					t.Errorf("%s%s: %s is %t after %d proxies", filter, arguments, way.back, back, len(walked))
				}
				if at(found, "totalCount") != float64(len(all)) || len(walked) > len(all) {
					t.Fatalf("%s%s: %d proxies of %v, want %d", filter, arguments, len(walked), at(found, "totalCount"), len(all))
				}
				more = at(found, "pageInfo", way.more).(bool)
				arguments = fmt.Sprintf("%s: 3, %s: %q", way.size, way.place, at(found, "pageInfo", way.cursor))
			}
			if !reflect.DeepEqual(walked, all) {
				t.Errorf("%spages by %s have %v, want %v", filter, way.size, walked, all)
			}
		}
	}
}

// TestU32IDsHaveTheirObjects: a port and a conflict have their clusters as they have the IDs of these, and a
// gateway has the networks from which it is entered.
func TestU32IDsHaveTheirObjects(t *testing.T) {
	h := hubOver(t, bridged(t), proxies())
	data := h.answer(`{services(first:500){nodes{ports{clusterIDs clusters{clusterID network{networkID}}} conflicts{clusterIDs clusters{clusterID}}}}
	  network(networkID:"n2"){gateways{fromNetworkIDs fromNetworks{networkID}}}}`, nil)
	found := map[string]int{}
	for _, s := range at(data, "services", "nodes").([]any) {
		for _, list := range []string{"ports", "conflicts"} {
			for _, one := range at(s, list).([]any) {
				var ids []any
				for _, c := range at(one, "clusters").([]any) {
					ids = append(ids, at(c, "clusterID"))
				}
				found[list] += len(ids)
				if !slices.Equal(ids, at(one, "clusterIDs").([]any)) {
					t.Errorf("%s: of the clusters %v there are %v", list, at(one, "clusterIDs"), ids)
				}
			}
		}
	}
	if found["ports"] == 0 || found["conflicts"] == 0 {
		t.Errorf("there are %v clusters", found)
	}
	// The network n3 does not exist.
	h.want(data, []any{
		map[string]any{"fromNetworkIDs": []any{}, "fromNetworks": []any{}},
		map[string]any{"fromNetworkIDs": []any{"n3"}, "fromNetworks": []any{}},
	}, "network", "gateways")
}
