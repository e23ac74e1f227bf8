package graph_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

func TestConfigObjectsAreFiltered(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(routes(route("shop", "cart", "a"), route("edge", "cart", "b"), route("shop", "hidden", "b"),
		"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: out, namespace: shop}\nspec: {hosts: [a.example.com], location: MESH_EXTERNAL, resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
	for filter, want := range map[string]string{
		`{}`:                    "out cart cart filed hidden",
		`{group:"x"}`:           "",
		`{kind:"ServiceEntry"}`: "out",
		`{group:"networking.istio.io",kind:"VirtualService"}`: "cart cart filed hidden",
		`{namespace:"edge"}`:                           "cart",
		`{namespace:""}`:                               "",
		`{name:"cart"}`:                                "cart cart",
		`{source:FILE}`:                                "filed",
		`{set:"of-b"}`:                                 "cart hidden",
		`{labels:[{key:"app",value:"a"}]}`:             "cart",
		`{labels:[{key:"app",value:""}]}`:              "",
		`{namespace:"shop",name:"hidden",source:ETCD}`: "hidden",
	} {
		data := c.answer(`{configObjects(filter:`+filter+`){totalCount nodes{name}}}`, nil)
		var names []string
		for _, node := range at(data, "configObjects", "nodes").([]any) {
			names = append(names, at(node, "name").(string))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s gives %q, want %q", filter, got, want)
		}
		c.want(data, float64(len(names)), "configObjects", "totalCount")
	}
}

func TestConfigObjectSaysWhatItIs(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(route("shop", "hidden", "a"))
	const query = `query($name:String!,$at:String){configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:$name,at:$at){
	  apiVersion revision labels{key value} createdAt expiresAt set source sourceName hidden{source sourceName} yaml json}}`
	got := at(c.answer(query, map[string]any{"name": "hidden"}), "configObject")
	for field, want := range map[string]any{
		"apiVersion": "networking.istio.io/v1", "revision": "1", "createdAt": "2026-11-20T00:00:00.000Z", "expiresAt": nil, "set": "of-a",
		"source": "ETCD", "sourceName": "etcd",
		"labels": []any{map[string]any{"key": "app", "value": "a"}, map[string]any{"key": "isthmus.dev/set", "value": "of-a"}},
		"hidden": []any{map[string]any{"source": "FILE", "sourceName": "file /etc/isthmus"}},
	} {
		c.want(got, want, field)
	}
	yaml, json := at(got, "yaml").(string), at(got, "json").(string)
	if strings.Contains(yaml, "managedFields") || !strings.Contains(json, "managedFields") {
		t.Errorf("managed fields are in the YAML or not in the JSON:\n%s\n%s", yaml, json)
	}
	c.apply(route("shop", "hidden", "b"))
	for revision, want := range map[any]any{"1": "of-a", "2": "of-b", nil: "of-b"} {
		c.want(c.answer(query, map[string]any{"name": "hidden", "at": revision}), want, "configObject", "set")
	}
	c.want(c.answer(query, map[string]any{"name": "hidden", "at": "0"}), nil, "configObject")
	c.want(c.answer(query, map[string]any{"name": "gone"}), nil, "configObject")
	for revision, code := range map[string]string{"99": `"NOT_FOUND"`, "x": `"BAD_USER_INPUT"`, "-1": `"BAD_USER_INPUT"`} {
		if _, errs := c.ask(query, map[string]any{"name": "hidden", "at": revision}); !strings.Contains(errs, code) {
			t.Errorf("revision %s gets %s", revision, errs)
		}
	}
}

func TestConfigSourcesSayHowTheyAre(t *testing.T) {
	c := newConfigured(t, nil)
	data := c.answer("{configSources{name kind revision age problems{code object field message}} kinds{group kind plural shortNames namespaced versions storage}}", nil)
	c.want(data, "etcd", "configSources", 0, "name")
	c.want(data, []any{}, "configSources", 0, "problems")
	c.want(data, "FILE", "configSources", 1, "kind")
	c.want(data, "5", "configSources", 1, "revision")
	c.want(data, []any{map[string]any{"code": "UNDECODABLE", "object": "b.yaml", "field": "spec", "message": "no YAML"}},
		"configSources", 1, "problems")
	if age, _ := at(data, "configSources", 1, "age").(string); !strings.HasPrefix(age, "1m") {
		t.Errorf("its age is %q", age)
	}
	c.want(data, []any{map[string]any{
		"group": networking, "kind": "VirtualService", "plural": "virtualservices", "shortNames": []any{"vs"}, "namespaced": true,
		"versions": []any{"v1", "v1beta1"}, "storage": "v1",
	}}, "kinds")
}

func TestHistorySaysWhoDidWhat(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(routes(route("shop", "b", "x"), route("shop", "a", "x")))
	c.delete("shop", "a")
	data := c.answer(`{history(first:1){totalCount pageInfo{hasNextPage} nodes{revision author createdAt message manager ticket changes{action object{name revision}}}}}`, nil)
	c.want(data, map[string]any{
		"revision": "2", "author": nil, "createdAt": "2026-11-21T12:00:00.000Z", "message": nil, "manager": "ops", "ticket": nil,
		"changes": []any{map[string]any{"action": "DELETE", "object": map[string]any{"name": "a", "revision": nil}}},
	}, "history", "nodes", 0)
	c.want(data, 2.0, "history", "totalCount")
	c.want(c.answer(`{history(first:1){pageInfo{hasNextPage} nodes{revision}}}`, nil), true, "history", "pageInfo", "hasNextPage")
	c.want(c.answer(`{configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"b"){history{nodes{revision action manager}}}}`, nil),
		map[string]any{"revision": "1", "action": "CREATE", "manager": "ops"}, "configObject", "history", "nodes", 0)
}

// deliveries know of shop/cart.
type deliveries struct{}

func (deliveries) Delivery(_ *federation.Snapshot, _ *fleet.Value, key federation.ObjectKey) (graph.Delivery, bool) {
	return graph.Delivery{Acked: 1, Unanswered: 1, Rejected: 1, Pending: 1, Proxies: func() []graph.ProxyState {
		return []graph.ProxyState{
			{ProxyID: fleet.ProxyID{NodeID: "b"}, State: model.RolloutStateRejected, Error: "port 0"},
			{ProxyID: fleet.ProxyID{NodeID: "a"}, State: model.RolloutStateAcked},
			{ProxyID: fleet.ProxyID{NodeID: "c"}, State: model.RolloutStateDelivered},
			{ProxyID: fleet.ProxyID{NodeID: "d"}, State: model.RolloutStatePending},
		}
	}}, key == routeKey("shop", "cart")
}

func TestStatusSaysWhatBecameOfAnObject(t *testing.T) {
	c := newConfigured(t, func(o *graph.Options) {
		o.Config.Deliveries = deliveries{}
		o.Config.NotHonoured = func(_ *federation.Snapshot, of *federation.Object) []model.NotHonoured {
			return []model.NotHonoured{{Field: "spec.http", Reason: "of " + of.Key.Name}}
		}
		o.Config.Findings = func(of *federation.Snapshot, _ *fleet.Value, key federation.ObjectKey) []apply.Finding {
			return []apply.Finding{{Code: "UNUSED", Severity: apply.Warning, Message: "nobody asks for it", Key: key}}
		}
	})
	c.apply(routes(route("shop", "cart", "x"), route("shop", "other", "x")))
	const query = `{configObjects(filter:{source:ETCD}){nodes{status{delivered acked rejected pending proxies(last:3){totalCount nodes{nodeID state error}} refusing:proxies(filter:{state:REJECTED}){totalCount nodes{nodeID error}} notHonoured{field reason} findings{code message object{name}}}}}}`
	nodes := at(c.answer(query, nil), "configObjects", "nodes").([]any)
	status := at(nodes, 0, "status")
	for field, want := range map[string]any{"delivered": 3.0, "acked": 1.0, "rejected": 1.0, "pending": 2.0} {
		c.want(status, want, field)
	}
	var proxies []string
	for _, p := range at(status, "proxies", "nodes").([]any) {
		proxies = append(proxies, at(p, "nodeID").(string)+" "+at(p, "state").(string))
	}
	if want := []string{"b REJECTED", "c DELIVERED", "d PENDING"}; !slices.Equal(proxies, want) {
		t.Errorf("the proxies are %v", proxies)
	}
	c.want(status, map[string]any{"totalCount": 1.0, "nodes": []any{map[string]any{"nodeID": "b", "error": "port 0"}}}, "refusing")
	c.want(status, []any{map[string]any{"field": "spec.http", "reason": "of cart"}}, "notHonoured")
	c.want(status, []any{map[string]any{"code": "UNUSED", "message": "nobody asks for it", "object": map[string]any{"name": "cart"}}},
		"findings")
	other := at(nodes, 1, "status")
	c.want(other, nil, "acked")
	c.want(other, nil, "delivered")
	c.want(other, 0.0, "proxies", "totalCount")
}

// TestR43FieldsOfOneOperationSpeakOfOneSnapshot: notHonoured, too, which may be
// asked of one object after the mesh has changed.
func TestR43FieldsOfOneOperationSpeakOfOneSnapshot(t *testing.T) {
	var c configured
	c = newConfigured(t, func(o *graph.Options) {
		o.Config.NotHonoured = func(of *federation.Snapshot, _ *federation.Object) []model.NotHonoured {
			// The mesh changes while the operation is answered.
			c.mesh.Open(federation.ShardKey{
				Cluster:  "c9",
				Provider: federation.Kubernetes,
			}).Update(federation.Edit{Status: &federation.RegistryStatus{Phase: federation.Ready}})
			return []model.NotHonoured{{Field: "spec", Reason: strconv.FormatUint(of.Version(), 10)}}
		}
	})
	c.apply(routes(route("shop", "a", "x"), route("shop", "b", "x")))
	data := c.answer(`{hub{snapshotVersion} configObjects(filter:{source:ETCD}){nodes{status{notHonoured{reason}}}}}`, nil)
	for i := range 2 {
		c.want(data, at(data, "hub", "snapshotVersion"), "configObjects", "nodes", i, "status", "notHonoured", 0, "reason")
	}
}

// longAgo has the history of an object whose older records are gone.
type longAgo struct{}

func (longAgo) History(context.Context, federation.ObjectKey) (config.ObjectHistory, error) {
	return config.ObjectHistory{Compacted: true, Steps: []config.Step{{Revision: 9}, {Revision: 1}}}, nil
}

// TestR40HistorySaysWhatIsNotKept: an object has a step, however old, and a revision
// that is newer than the operation's is not shown.
func TestR40HistorySaysWhatIsNotKept(t *testing.T) {
	c := newConfigured(t, func(o *graph.Options) { o.Config.ObjectHistory = longAgo{} })
	c.apply(route("shop", "a", "x"))
	data := c.answer(`{configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"a"){history{totalCount compacted nodes{revision author createdAt action message}}}}`, nil)
	c.want(data, map[string]any{
		"totalCount": 1.0, "compacted": true, "nodes": []any{map[string]any{
			"revision": "1", "author": nil, "createdAt": nil,
			"action": nil, "message": nil,
		}},
	}, "configObject", "history")
}
