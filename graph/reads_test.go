package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
)

// reads counts how often what answers are made of is read.
type reads struct{ snapshots, fleets, views, records atomic.Int64 }

type countedSnapshots struct {
	graph.Snapshots
	*reads
}

func (c countedSnapshots) Latest() *federation.Snapshot {
	c.snapshots.Add(1)
	return c.Snapshots.Latest()
}

type countedFleet struct {
	graph.Fleet
	*reads
}

func (c countedFleet) Latest() *fleet.Value {
	c.fleets.Add(1)
	return c.Fleet.Latest()
}

type countedObjects struct {
	graph.Objects
	*reads
}

func (c countedObjects) Latest() *config.View {
	c.views.Add(1)
	return c.Objects.Latest()
}

func (c countedObjects) LatestPublished() *config.View {
	c.views.Add(1)
	return c.Objects.LatestPublished()
}

type countedHistory struct {
	graph.History
	*reads
}

func (c countedHistory) Records(ctx context.Context, before int64, limit int) ([]config.Record, error) {
	c.records.Add(1)
	return c.History.Records(ctx, before, limit)
}

// count has all reads of the options counted.
func (r *reads) count(o *graph.Options) {
	o.Snapshots = countedSnapshots{o.Snapshots, r}
	o.Fleet = countedFleet{o.Fleet, r}
	if o.Config.Objects != nil {
		o.Config.Objects, o.Config.History = countedObjects{o.Config.Objects, r}, countedHistory{o.Config.History, r}
	}
}

// taken are the reads since it was asked last.
func (r *reads) taken() string {
	return fmt.Sprintf("%d snapshots, %d fleets, %d configurations, %d histories", r.snapshots.Swap(0), r.fleets.Swap(0),
		r.views.Swap(0), r.records.Swap(0))
}

// TestOperationReadsOneSnapshot however many nodes and relations it has.
func TestOperationReadsOneSnapshot(t *testing.T) {
	read, o := &reads{}, graph.Options{Snapshots: &source{bridged(t)}, Fleet: proxies(), Explainer: explainer{}, Inspector: inspector{10}}
	read.count(&o)
	h := hubWith(t, o)
	operations := contract(t)
	operations["relations"] = `{services(first:100){nodes{clusterVIPs{cluster{network{networkID}}} endpoints(first:5){nodes{cluster{clusterID} network{networkID} service{hostname}}}}}
	  networks{nodes{clusters{nodes{clusterID}}}} proxies{nodes{cluster{clusterID} network{networkID} services{totalCount}}}}`
	operations["proxies of others"] = `{clusters{nodes{proxies{nodes{nodeID}}}} networks{nodes{proxies{totalCount} gateways{fromNetworks{networkID}}}}
	  services(first:100){nodes{proxies(filter:{type:SIDECAR}){nodes{nodeID}} ports{clusters{clusterID}} conflicts{clusters{clusterID}}}}}`
	for name, text := range operations {
		if strings.HasPrefix(text, "mutation") || strings.HasPrefix(text, "subscription") || name == "ConfigObjects" || name == "History" {
			continue
		}
		read.taken()
		if _, errs := h.ask(text, map[string]any{
			"hostname": web.Hostname, "namespace": web.Namespace, "nodeID": sidecarID,
			"proxy": sidecarID, "port": 80,
		}); errs != "" {
			t.Errorf("%s: %s", name, errs)
		}
		if read.snapshots.Load() != 1 || read.fleets.Load() > 1 {
			t.Errorf("%s reads %s", name, read.taken())
		}
	}
}

// arguments are those that fields need and have no default.
var arguments = map[string]string{
	"hostname": `hostname:"web.shop.svc.cluster.local"`, "namespace": `namespace:"shop"`, "nodeID": `nodeID:"` + sidecarID + `"`,
	"proxy": `proxy:"` + sidecarID + `"`,
	"port":  "port:80", "clusterID": `clusterID:"c2"`, "networkID": `networkID:"n2"`, "group": `group:"` + networking + `"`,
	"kind": `kind:"VirtualService"`,
	"name": `name:"r000"`, "id": `id:"none"`, "ids": "ids:[]",
}

// called is a field with the arguments that it needs.
func called(field *ast.FieldDefinition) string {
	var given []string
	for _, argument := range field.Arguments {
		if text := arguments[argument.Name]; text != "" && (argument.Type.NonNull || field.Name == "service") {
			given = append(given, text)
		}
	}
	if len(given) == 0 {
		return field.Name
	}
	return field.Name + "(" + strings.Join(given, ",") + ")"
}

// listsOf are operations that ask for the lists of all types, with the objects to which
// their items lead: by the type and the field.
func listsOf(schema *ast.Schema) map[string]string {
	lists, paths := map[string]string{}, map[string][]string{"Query": {}}
	for queue := []string{"Query"}; len(queue) > 0; queue = queue[1:] {
		from := schema.Types[queue[0]]
		for _, field := range from.Fields {
			of := schema.Types[field.Type.Name()]
			if strings.HasPrefix(field.Name, "__") || of.Kind != ast.Object {
				continue
			}
			path := append(paths[from.Name][:len(paths[from.Name]):len(paths[from.Name])], called(field))
			if field.Type.Elem != nil {
				lists[from.Name+"."+field.Name] = "{" + strings.Join(path, "{") + "{__typename " + relations(schema, of) +
					strings.Repeat("}", len(path)+1)
			}
			if _, known := paths[of.Name]; !known {
				paths[of.Name], queue = path, append(queue, of.Name)
			}
		}
	}
	return lists
}

// relations selects the objects to which one leads directly.
func relations(schema *ast.Schema, of *ast.Definition) string {
	var out strings.Builder
	for _, field := range of.Fields {
		if !strings.HasPrefix(field.Name, "__") && schema.Types[field.Type.Name()].Kind == ast.Object {
			out.WriteString(called(field) + "{__typename} ")
		}
	}
	return out.String()
}

// TestEveryListIsReadAtOnce: the fields of lists, and what their items lead to, are
// answered from one snapshot, one fleet, one configuration, and at most two reads of the history: a
// second one finds its end.
func TestEveryListIsReadAtOnce(t *testing.T) {
	read := &reads{}
	c := newConfigured(t, func(o *graph.Options) {
		o.Snapshots, o.Fleet = &source{bridged(t)}, proxies()
		o.Explainer, o.Inspector = explainer{}, inspector{10}
		o.Config.Findings = func(_ *federation.Snapshot, _ *fleet.Value, key federation.ObjectKey) []apply.Finding {
			return []apply.Finding{{Code: "A", Key: key, Related: []federation.ObjectKey{key}}}
		}
		read.count(o)
	})
	for n := range 20 {
		c.apply(route("shop", fmt.Sprintf("r%03d", n), "a"))
	}
	lists := listsOf(publicSchema(t))
	for _, name := range []string{
		"ServiceConnection.nodes", "Proxy.sync", "ConfigRevision.changes", "ConfigObjectStatus.findings",
		"Explanation.endpoints", "NetworkGateway.health",
	} {
		if lists[name] == "" {
			t.Errorf("the list %s is not asked for", name)
		}
	}
	for name, text := range lists {
		read.taken()
		if _, errs := c.ask(text, nil); errs != "" && name != "TrustBundle.roots" {
			t.Errorf("%s: %s gets %s", name, text, errs)
		}
		if read.snapshots.Load() > 1 || read.fleets.Load() > 1 || read.views.Load() > 1 || read.records.Load() > 2 {
			t.Errorf("%s: %s reads %s", name, text, read.taken())
		}
	}
	const revisions = `{history(first:20){nodes{id}}}`
	var ids []any
	for _, n := range at(c.answer(revisions, nil), "history", "nodes").([]any) {
		ids = append(ids, at(n, "id"))
	}
	read.taken()
	if got := at(c.answer(`query($ids:[ID!]!){nodes(ids:$ids){id}}`, map[string]any{"ids": ids}), "nodes").([]any); len(got) != 20 ||
		read.records.Load() != 1 {
		t.Errorf("%d revisions by their IDs take %d reads of the history", len(got), read.records.Load())
	}
}

// TestReadsDoNotGrowWithObjects: what an operation reads of configuration objects, of the
// history, for a mutation, or for an event of a subscription is the same for one object
// and for many.
func TestReadsDoNotGrowWithObjects(t *testing.T) {
	few, many := readsOf(t, 2), readsOf(t, 60)
	for name, want := range few {
		if many[name] != want {
			t.Errorf("%s reads %s with 2 objects, and %s with 60", name, want, many[name])
		}
	}
	for name, want := range map[string]string{
		"ConfigObjects": "1 snapshots, 1 fleets, 1 configurations, 0 histories",
		"History":       "1 snapshots, 1 fleets, 1 configurations, 1 histories",
	} {
		if few[name] != want {
			t.Errorf("%s reads %s, want %s", name, few[name], want)
		}
	}
}

// readsOf are the reads of each operation about so many objects.
func readsOf(t *testing.T, objects int) map[string]string {
	t.Helper()
	read, of := &reads{}, map[string]string{}
	c := newConfigured(t, func(o *graph.Options) {
		o.Fleet = proxies()
		o.Config.Findings = func(*federation.Snapshot, *fleet.Value, federation.ObjectKey) []apply.Finding { return nil }
		read.count(o)
	})
	c.apply(route("shop", "first", "a"))
	manifests := make([]string, objects)
	for i := range manifests {
		manifests[i] = route("shop", fmt.Sprintf("r%03d", i), "a")
	}
	texts := contract(t)
	for _, step := range []struct {
		name, text string
		variables  map[string]any
	}{
		{
			"Apply", strings.Replace(texts["Apply"], "namespace name }", "namespace name current { status { acked findings { code } } } }", 1),
			input(map[string]any{"manifests": routes(manifests...)}),
		},
		{"ConfigObjects", texts["ConfigObjects"], map[string]any{"first": 100}},
		{"History", `query History {history(first:1){nodes{revision changes{object{current{name status{acked findings{code}}}}}}}}`, nil},
	} {
		read.taken()
		if data, errs := c.ask(step.text, step.variables); errs != "" {
			t.Fatal(step.name, errs, data)
		}
		of[step.name] = read.taken()
	}
	s := newSubscriber(t, c.options)
	read.taken()
	changes := s.changes("", nil)
	if state, _ := changes.whole(); len(state.ConfigObjects) < objects {
		t.Fatalf("the picture has %d objects", len(state.ConfigObjects))
	}
	changes.stop()
	of["Changes"] = read.taken()
	return of
}
