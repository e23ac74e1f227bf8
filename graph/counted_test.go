package graph_test

import (
	"fmt"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/federationtest"
	"isthmus.dev/isthmus/federation/fleet"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/internal/hub/status"
	"isthmus.dev/isthmus/internal/hub/status/statustest"
)

// listed has the list that each count of the overview is the length of; %s is what is counted.
var listed = map[string]string{
	"clusters total":              "clusters",
	"clusters byPhase":            "clusters(filter: {phase: %s})",
	"proxies total":               "proxies",
	"proxies byState":             "proxies(filter: {syncState: %s})",
	"proxies byCluster":           "proxies(filter: {clusterID: %s})",
	"services total":              "services",
	"services withConflicts":      "services(filter: {hasConflicts: true})",
	"services withoutEndpoints":   "services(filter: {hasEndpoints: false})",
	"endpoints total":             "endpoints",
	"endpoints byHealth":          "endpoints(filter: {health: %s})",
	"endpoints byNetwork":         "endpoints(filter: {networkID: %s})",
	"configObjects total":         "configObjects",
	"configObjects rejected":      "configObjects(filter: {rejected: true})",
	"configObjects withFindings":  "configObjects(filter: {hasFindings: true})",
	"configObjects byFindingCode": "configObjects(filter: {findingCode: %s})",
	"gateways total":              "gateways",
	"gateways unreachable":        "gateways(filter: {unreachable: true})",
}

// countsAreListed compares every count of the overview with the length of its list, and returns how
// many counts are not 0, by their names.
func countsAreListed(h hub) map[string]int {
	h.t.Helper()
	schema, seen := publicSchema(h.t), map[string]int{}
	length := func(list string, arguments ...any) int {
		data := h.answer(fmt.Sprintf("{list:"+list+"{totalCount nodes{__typename}}}", arguments...), nil)
		total, all := at(data, "list", "totalCount"), at(data, "list", "nodes").([]any)
		if float64(min(len(all), 50)) != min(total.(float64), 50) {
			h.t.Errorf("%s %v: a page has %d of %v", list, arguments, len(all), total)
		}
		return int(total.(float64))
	}
	same := func(name string, count any, arguments ...any) {
		if listed[name] == "" {
			h.t.Fatalf("the overview counts %s, and no list has a filter for it", name)
		}
		if got := length(listed[name], arguments...); float64(got) != count {
			h.t.Errorf("%s %v: the overview counts %v, and the list has %d", name, arguments, count, got)
		}
		if count != 0.0 {
			seen[name]++
		}
	}
	for _, part := range schema.Types["Overview"].Fields {
		of := schema.Types[part.Type.Name()]
		if of.Kind != ast.Object {
			continue
		}
		for _, count := range of.Fields {
			name := part.Name + " " + count.Name
			if count.Type.Name() == "Int" {
				same(name, at(h.answer("{overview{"+part.Name+"{"+count.Name+"}}}", nil), "overview", part.Name, count.Name))
				continue
			}
			by := schema.Types[count.Type.Name()].Fields[0] // what is counted: a name or a value of an enum
			rows := at(h.answer("{overview{"+part.Name+"{"+count.Name+"{"+by.Name+" count}}}}", nil), "overview", part.Name, count.Name)
			counted := map[string]bool{}
			for _, row := range rows.([]any) {
				text, _ := at(row, by.Name).(string)
				counted[text] = true
				if schema.Types[by.Type.Name()].Kind != ast.Enum {
					text = fmt.Sprintf("%q", text)
				}
				same(name, at(row, "count"), text)
			}
			for _, value := range schema.Types[by.Type.Name()].EnumValues {
				if !counted[value.Name] {
					same(name, 0.0, value.Name)
				}
			}
		}
	}
	return seen
}

// refusing are deliveries of which every second object, by the length of its name, is rejected by a proxy.
type refusing struct{ graph.Deliveries }

func (r refusing) Delivery(of *federation.Snapshot, proxies *fleet.Value, key federation.ObjectKey) (graph.Delivery, bool) {
	d, known := r.Deliveries.Delivery(of, proxies, key)
	if len(key.Name)%2 == 0 {
		d.Rejected, known = 1, true
	}
	return d, known
}

// TestU58WhatIsCountedIsListed: whatever the overview counts, a list has a filter for it, whose totalCount is the
// count. It holds for every scenario with proxies, in each of its steps, and for a mesh with gateways that cannot be reached.
func TestU58WhatIsCountedIsListed(t *testing.T) {
	found := map[string]int{}
	add := func(some map[string]int) {
		for name, n := range some {
			found[name] += n
		}
	}
	statustest.Each(t, "proxies.yaml", func(t *testing.T, s *federationtest.Scenario, served statustest.Hub) {
		h := hubOver(t, s.Snapshot(), served.Fleet, func(o *graph.Options) {
			o.Snapshots, o.Config = s.Aggregate, graph.Config{
				Objects: objects{s}, Findings: served.Objects.Findings,
				Deliveries: refusing{status.Delivery{Server: served.Server, Fleet: served.Fleet}},
			}
		})
		for more := true; more; more = s.Next(t) {
			statustest.Settle()
			add(countsAreListed(h))
		}
	})
	t.Run("gateways", func(t *testing.T) {
		all := proxies()
		connectMany(all)
		all.Connect(fleet.Proxy{NodeID: "of no cluster"})
		c := newConfigured(t, func(o *graph.Options) { o.Snapshots, o.Fleet = &source{bridged(t)}, all })
		c.options.Snapshots.(*source).next(probed(false))
		add(countsAreListed(c.hub))
		with, without := `{networks(filter:{hasUnreachableGateway:true}){nodes{networkID}}}`, `{networks(filter:{hasUnreachableGateway:false}){nodes{networkID}}}`
		c.want(c.answer(with, nil), []any{map[string]any{"networkID": "n2"}}, "networks", "nodes")
		c.want(c.answer(without, nil), []any{map[string]any{"networkID": "n1"}}, "networks", "nodes")
	})
	for name := range listed {
		if found[name] == 0 {
			t.Errorf("no mesh has any of %s", name)
		}
	}
}
