package graph_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// unlinked are the fields that have no object beside them, and why.
var unlinked = map[string]string{
	"ApplyPayload.revision":    "the configuration as a whole; history has the change",
	"DeletePayload.revision":   "the configuration as a whole; history has the change",
	"RollbackPayload.revision": "the configuration as a whole; history has the change",
	"ConfigRevision.revision":  "it is the object itself",
	"ConfigSource.revision":    "each source counts its own",
	"Hub.revision":             "the configuration as a whole; history has the change",
	"ObjectRef.revision":       "current leads to it",
	"Cluster.clusterID":        "it is the object itself",
	"Network.networkID":        "it is the object itself",
	"Proxy.nodeID":             "it is the object itself",
}

// beside is the field that has what the field of the name names; "": it names nothing.
func beside(name string) string {
	switch {
	case name == "revision":
		return "configRevision"
	case name == "sourceName":
		return "configSource"
	case name == "nodeID":
		return "proxy"
	case strings.HasSuffix(name, "IDs"):
		return strings.TrimSuffix(name, "IDs") + "s"
	case strings.HasSuffix(name, "ID"):
		return strings.TrimSuffix(name, "ID")
	}
	return ""
}

// TestU90NamesHaveTheirObjects: each field that names a cluster, a network, a proxy, a revision or a source has the
// object beside it, and each code has its documentation.
func TestU90NamesHaveTheirObjects(t *testing.T) {
	schema, found := publicSchema(t), map[string]bool{}
	for _, of := range schema.Types {
		if of.Kind != ast.Object || strings.HasPrefix(of.Name, "__") {
			continue
		}
		for _, field := range of.Fields {
			where := of.Name + "." + field.Name
			if field.Name == "code" && of.Fields.ForName("docUrl") == nil {
				t.Errorf("%s has no docUrl beside it", where)
			}
			name := beside(field.Name)
			if name == "" {
				continue
			}
			if unlinked[where] != "" {
				found[where] = true
				continue
			}
			object := of.Fields.ForName(name)
			if object == nil || schema.Types[object.Type.Name()].Kind != ast.Object {
				t.Errorf("%s has no object %s beside it", where, name)
			} else if object.Type.Elem == nil && object.Type.NonNull && object.Arguments.ForName("first") == nil {
				t.Errorf("%s.%s may be gone, and must be nullable", of.Name, name)
			}
		}
	}
	for where := range unlinked {
		if !found[where] {
			t.Errorf("there is no field %s", where)
		}
	}
}

const meshVersion = "apiVersion: isthmus.dev/v1\nkind: "

// linked is a hub with clusters, networks, a Drain and routes, all of which lead to others.
func linked(t testing.TB) configured {
	t.Helper()
	c := newConfigured(t, func(o *graph.Options) {
		o.Fleet, o.Authority = proxies(), &rotating{}
		for _, kind := range routeKinds[len(o.Config.Kinds):] {
			o.Config.Kinds = append(o.Config.Kinds, schema.Kind{Kind: kind})
		}
	})
	ofFirst, ofSecond := services()
	gateway := &federation.Shard{
		Ports: []federation.Port{{Name: "tls", Number: 15443, Protocol: federation.TLS}}, Labels: map[string]string{"topology.istio.io/network": "n1"},
		External: []federation.Address{federation.IPAddress(netip.MustParseAddr("192.0.2.9"))},
	}
	ofFirst[federation.ServiceKey{Hostname: "gw.istio-system.svc.cluster.local", Namespace: "istio-system"}] = gateway
	operator := c.mesh.Open(federation.ShardKey{Cluster: "hub", Provider: "OPERATOR"})
	operator.Update(federation.Edit{Clusters: federation.Delta[federation.ClusterID, federation.ClusterSpec]{Set: map[federation.ClusterID]federation.ClusterSpec{
		"c1": {Provider: federation.Kubernetes, Network: "n1"}, "c2": {Provider: federation.Kubernetes, Network: "n2"},
	}}})
	for source, services := range map[federation.ShardKey]map[federation.ServiceKey]*federation.Shard{first: ofFirst, second: ofSecond} {
		c.mesh.Open(source).Update(federation.Edit{
			Services: federation.Delta[federation.ServiceKey, *federation.Shard]{Full: true, Set: services},
			Problems: federation.Delta[string, federation.Problem]{Set: map[string]federation.Problem{
				"a": {Code: "PORT_INVALID", Object: "Service shop/web"}, "b": {Code: "UNKNOWN", Object: "Service shop/we"},
				"c": {Code: "HIDDEN_BY", Object: "VirtualService shop/web"},
			}},
		})
	}
	c.apply(routes(
		meshVersion+"Cluster\nmetadata: {name: c1}\nspec: {}",
		meshVersion+"Network\nmetadata: {name: n2}\nspec: {gateways: [{address: 192.0.2.1}, {address: 127.0.0.1}]}",
		meshVersion+"Drain\nmetadata: {name: c2}\nspec: {cluster: c2, force: true}",
		strings.Replace(route("shop", "web", "a"), "web.example.com", "web.shop.svc.cluster.local", 1),
		strings.Replace(route("shop", "all", "a"), "all.example.com", "'*.svc.cluster.local'", 1),
	))
	c.apply(strings.Replace(route("shop", "web", "b"), "web.example.com", "web.shop.svc.cluster.local", 1))
	return c
}

// TestU90TheGraphIsWalked from problems, revisions, sources, gateways, endpoints and services to what they name.
func TestU90TheGraphIsWalked(t *testing.T) {
	c := linked(t)
	type object = map[string]any
	named := func(name string) object { return object{"name": name} }
	for query, want := range map[string]any{
		`{cluster(clusterID:"c1"){problems{nodes{code docUrl configObject{name} service{hostname}}}}}`: object{"problems": object{"nodes": []any{
			object{"code": "UNKNOWN", "docUrl": nil, "configObject": nil, "service": nil},
			object{
				"code": "PORT_INVALID", "docUrl": "https://isthmus.dev/docs/clusters-reference#problems", "configObject": nil,
				"service": object{"hostname": string(web.Hostname)},
			},
			object{"code": "HIDDEN_BY", "docUrl": "https://isthmus.dev/docs/kinds/#problems", "configObject": named("web"), "service": nil},
		}}},
		`{cluster(clusterID:"c1"){configObject{kind name} trustRoots{fingerprint}}}`: object{
			"configObject": object{"kind": "Cluster", "name": "c1"}, "trustRoots": []any{object{"fingerprint": "f1"}},
		},
		`{cluster(clusterID:"c2"){configObject{kind name} trustRoots{fingerprint}}}`: object{"configObject": nil, "trustRoots": []any{}},
		`{network(networkID:"n1"){configObject{name} gateways{configObject{name} clusterID cluster{clusterID}}}}`: object{
			"configObject": nil, "gateways": []any{object{"configObject": nil, "clusterID": "c1", "cluster": object{"clusterID": "c1"}}},
		},
		`{network(networkID:"n2"){configObject{name} gateways{configObject{name} cluster{clusterID}} refusedGateways{gateway configObject{name} clusterID}}}`: object{
			"configObject": named("n2"), "gateways": []any{object{"configObject": named("n2"), "cluster": nil}},
			"refusedGateways": []any{object{"gateway": "127.0.0.1:15443", "configObject": named("n2"), "clusterID": nil}},
		},
		`{service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){endpoints{nodes{address drain{kind name} proxies{nodes{nodeID}}}}}}`: object{
			"endpoints": object{"nodes": []any{
				object{"address": "10.0.0.1", "drain": nil, "proxies": object{"nodes": []any{object{"nodeID": sidecarID}}}},
				object{"address": "10.0.0.2", "drain": nil, "proxies": object{"nodes": []any{}}},
				object{"address": "10.0.1.1", "drain": object{"kind": "Drain", "name": "c2"}, "proxies": object{"nodes": []any{}}},
			}},
		},
		`{service(hostname:"web.shop.svc.cluster.local",namespace:"shop"){configObjects{totalCount nodes{name}}}}`: object{
			"configObjects": object{"totalCount": 2.0, "nodes": []any{named("all"), named("web")}},
		},
		`{configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"web"){
		  configSource{name} configRevision{revision changes{action}} history{nodes{revision configRevision{changes{object{name}}}}}}}`: object{
			"configSource":   named("etcd"),
			"configRevision": object{"revision": "2", "changes": []any{object{"action": "UPDATE"}}},
			"history": object{"nodes": []any{
				object{"revision": "2", "configRevision": object{"changes": []any{object{"object": named("web")}}}},
				object{"revision": "1", "configRevision": object{"changes": []any{
					object{"object": named("c1")},
					object{"object": named("n2")},
					object{"object": named("c2")},
					object{"object": named("web")},
					object{"object": named("all")},
				}}},
			}},
		},
		`{configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"filed"){configSource{name kind} configRevision{revision}}}`: object{
			"configSource": object{"name": "file /etc/isthmus", "kind": "FILE"}, "configRevision": nil,
		},
		`{configObjects(filter:{sourceName:"file /etc/isthmus"}){totalCount}}`: object{"totalCount": 2.0},
	} {
		data := c.answer(query, nil)
		for root := range data {
			c.want(data, want, root)
		}
	}
	c.apply(route("shop", "hidden", "a"))
	c.want(c.answer(`{configObjects(filter:{name:"hidden"}){nodes{hidden{sourceName configSource{kind}}}}}`, nil),
		[]any{object{"sourceName": "file /etc/isthmus", "configSource": object{"kind": "FILE"}}}, "configObjects", "nodes", 0, "hidden")
}

// TestU90RevisionsOfAPageAreReadTogether, of objects and of steps of an object, and what cannot be read is null alone.
func TestU90RevisionsOfAPageAreReadTogether(t *testing.T) {
	read := &reads{}
	c := newConfigured(t, func(o *graph.Options) { read.count(o); o.Fleet = fleet.New() })
	for n := range 30 {
		c.apply(route("shop", fmt.Sprintf("r%d", n%15), fmt.Sprintf("a%d", n)))
	}
	for _, query := range []string{
		`{configObjects(filter:{source:ETCD}){totalCount nodes{name configRevision{revision createdAt}}}}`,
		`{configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"r1"){history{totalCount nodes{configRevision{revision}}}}}`,
	} {
		read.taken()
		if _, errs := c.ask(query, nil); errs != "" {
			t.Fatal(errs)
		}
		if got := read.records.Load(); got != 1 {
			t.Errorf("%s reads the history %d times", query, got)
		}
	}
}

// TestU90AnOperationReadsARevisionOnce, however many pages of it name the revision.
func TestU90AnOperationReadsARevisionOnce(t *testing.T) {
	read := &reads{}
	c := newConfigured(t, func(o *graph.Options) { read.count(o); o.Fleet = fleet.New() })
	for _, name := range []string{"a", "b", "c"} {
		c.apply(route("shop", name, name))
	}
	read.taken()
	one := `configObject(group:"networking.istio.io",kind:"VirtualService",namespace:"shop",name:"b"){configRevision{revision}}`
	if _, errs := c.ask("{first:"+one+" second:"+one+` page:configObjects(filter:{name:"b"}){nodes{configRevision{revision}}}}`, nil); errs != "" {
		t.Fatal(errs)
	}
	if got := read.records.Load(); got != 1 {
		t.Errorf("the operation reads the history %d times", got)
	}
}
