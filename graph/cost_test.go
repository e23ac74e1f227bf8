package graph_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// TestOperationsCostWhatTheyTake: what reads the store, counts the whole mesh or looks
// at proxies weighs more than a look at an object in memory, and a filter weighs by its fields (U61).
func TestOperationsCostWhatTheyTake(t *testing.T) {
	h := newConfigured(t, nil)
	times := func(n int, field string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "a%d: %s ", i, field)
		}
		return "{" + out.String() + "}"
	}
	const then = `configObject(group: "networking.istio.io", kind: "VirtualService", namespace: "shop", name: "filed", at: "1") { name }`
	const explained = `explain(proxy: "` + sidecarID + `", hostname: "none", port: 80) { endpoints { reason } }`
	resources := func(n int) string {
		return times(n, `proxy(nodeID: "`+sidecarID+`") { config { resources(first: 500) { nodes { sent acked causes { name } } } } }`)
	}
	for name, row := range map[string]struct {
		query   string
		tooMuch bool
	}{
		"histories in pages": {query: times(9, "history(first: 1) { nodes { revision } }")},
		"histories counted":  {query: times(10, "history(first: 1) { totalCount }"), tooMuch: true},
		"counted in a fragment": {query: times(10, "history(first: 1) { ... on ConfigRevisionConnection { ...F } }") +
			" fragment F on ConfigRevisionConnection { totalCount }", tooMuch: true},
		"many pages of histories": {query: times(20, "history(first: 500) { nodes { revision } }"), tooMuch: true},
		"overviews":               {query: times(19, "overview { gateways { total } }")},
		"too many overviews":      {query: times(20, "overview { gateways { total } }"), tooMuch: true},
		"objects as of revisions": {query: times(20, then), tooMuch: true},
		"objects":                 {query: times(20, strings.Replace(then, `, at: "1"`, "", 1))},
		"statuses":                {query: "{configObjects(first: 500) { nodes { status { acked findings { code } } } } }"},
		"manifests as YAML":       {query: times(3, "configObjects(first: 500) { nodes { yaml } }")},
		"too many of them":        {query: times(4, "configObjects(first: 500) { nodes { yaml } }"), tooMuch: true},
		"manifests as JSON":       {query: times(20, "configObjects(first: 500) { nodes { json } }")},
		"orders":                  {query: times(20, "services(first: 500, orderBy: {field: ENDPOINTS}) { nodes { hostname } }"), tooMuch: true},
		"explanations":            {query: times(20, explained)},
		"resources of proxies":    {query: "{proxies(first: 50) { nodes { config { resources(first: 1) { totalCount } } } } }"},
		"resources of a large page of proxies": {
			query: "{proxies(first: 500) { nodes { config { resources(first: 1) { totalCount } } } } }", tooMuch: true,
		},
		"resources with content": {query: resources(1)},
		"too much content":       {query: resources(2), tooMuch: true},
		"histories that fit":     {query: times(9, `history(first: 1, filter: {author: "a"}) { nodes { revision } }`), tooMuch: true},
		"histories of objects":   {query: "{configObjects(first: 500) { nodes { history(first: 1) { nodes { revision } } } } }"},
		"proxies of services":    {query: "{services(first: 500) { nodes { proxies(first: 10) { nodes { nodeID } } } } }"},
		"proxies in two ways": {
			query: times(10, "clusters(first: 50) { nodes { proxies(first: 1) { totalCount } network { proxies(first: 1) { totalCount } } } }"),
		},
		"proxies of a network": {query: times(20, `proxies(first: 1, filter: {networkID: "n1"}) { totalCount }`)},
		"proxies of networks":  {query: `{networks(first: 500) { nodes { proxies(first: 1) { totalCount } } } }`},
		"pages of proxies of a network": {
			query: times(20, `proxies(first: 500, filter: {networkID: "n1"}) { nodes { nodeID } }`),
		},
		"filtered proxies of clusters": {
			query: `{clusters(first: 500) { nodes { proxies(first: 1, filter: {networkID: "n1"}) { totalCount } } } }`,
		},
		"filtered proxies of a cluster, often": {
			query: `{cluster(clusterID: "c1") ` + times(30, `proxies(first: 1, filter: {networkID: "n1"}) { totalCount }`) + "}",
		},
		"filtered proxies of a network, often": {
			query: `{network(networkID: "n1") ` + times(30, `proxies(first: 500, filter: {type: ROUTER}) { nodes { nodeID } }`) + "}", tooMuch: true,
		},
		"filtered proxies of a service, often": {
			query: `{service(hostname: "none") ` + times(30, `proxies(first: 1, filter: {networkID: "n1"}) { totalCount }`) + "}",
		},
		"U61 proxies of a type":       {query: times(20, `proxies(first: 500, filter: {type: ROUTER}) { nodes { nodeID } }`)},
		"U61 services with endpoints": {query: times(20, `services(first: 450, filter: {hasEndpoints: true}) { nodes { hostname } }`)},
		"U61 services in a network":   {query: times(20, `services(first: 450, filter: {networkID: "n1"}) { nodes { hostname } }`), tooMuch: true},
		"U61 rejected objects":        {query: times(20, `configObjects(first: 1, filter: {rejected: true}) { totalCount }`), tooMuch: true},
		"U61 objects of a kind":       {query: times(20, `configObjects(first: 1, filter: {kind: "VirtualService"}) { totalCount }`)},
		"U61 endpoints of networks": {
			query: `{networks(first: 500) { nodes { endpoints(first: 10, filter: {health: HEALTHY}) { totalCount } services(first: 5) { totalCount } } } }`,
		},
		"U61 endpoints by their health, often": {query: times(20, `endpoints(first: 400, filter: {health: HEALTHY}) { nodes { address } }`), tooMuch: true},
		"R102 services of a page of objects":   {query: "{configObjects(first: 500) { nodes { services(first: 20) { nodes { hostname } } } } }"},
		"R102 roots of all clusters":           {query: times(10, "clusters(first: 500) { nodes { trustRoots { fingerprint } } }")},
		"R102 proxies of the endpoints of a page of services": {
			query: "{services(first: 100) { nodes { endpoints(first: 20) { nodes { proxies(first: 3) { nodes { nodeID } } } } } } }",
		},
		"clusters of ports": {
			query: `{services(first: 500) { nodes { ports { names { cluster { clusterID } } clusters { clusterID } }
				conflicts { clusters { clusterID } } } } }`,
		},
		"endpoints of the clusters of ports": {
			query: `{service(hostname: "none") { ports { clusters { endpoints(first: 500) { nodes { address } } } } } }`, tooMuch: true,
		},
		"endpoints of the clusters of conflicts": {
			query: `{service(hostname: "none") { conflicts { ...C } } }
				fragment C on Conflict { clusters { endpoints(first: 500) { nodes { address } } } }`,
			tooMuch: true,
		},
		"clusters of the networks of gateways": {
			query: `{network(networkID: "n1") { gateways { fromNetworks { clusters(first: 500) { nodes { clusterID } } } } } }`, tooMuch: true,
		},
		"endpoints of shards": {
			query: `{service(hostname: "none") { shards { cluster {
				endpoints(first: 500) { nodes { address service { hostname } locality { zone } gateways { address } } } } } } }`, tooMuch: true,
		},
		"statuses of many pages": {query: times(4, "configObjects(first: 500) { nodes { status { acked } } }"), tooMuch: true},
	} {
		_, errs := h.ask(row.query, nil)
		if strings.Contains(errs, "TOO_COMPLEX") != row.tooMuch {
			t.Errorf("%s: too much should be %t, and the answer has the errors %s", name, row.tooMuch, errs)
		}
	}
}

// TestQueriesOfClientsAreAllowed: the queries of the typed client, which the command line uses, and of the contract fit the limit of
// cost with all of their variables and the largest pages.
func TestQueriesOfClientsAreAllowed(t *testing.T) {
	h, schema := newConfigured(t, nil), publicSchema(t)
	client, err := os.ReadFile("../client/operations.graphql")
	if err != nil {
		t.Fatal(err)
	}
	texts := contract(t)
	texts["the client"] = string(client)
	asked := 0
	for name, text := range texts {
		document, errs := gqlparser.LoadQueryWithRules(schema, text, rules.NewDefaultRules())
		if len(errs) > 0 {
			t.Fatalf("%s: %s", name, errs)
		}
		for _, operation := range document.Operations {
			if operation.Operation != ast.Query {
				continue
			}
			variables := map[string]any{}
			for _, variable := range operation.VariableDefinitions {
				if variable.Variable != "last" && variable.Variable != "before" {
					variables[variable.Variable] = anyOf(schema, variable.Type)
				}
			}
			var alone strings.Builder
			formatter.NewFormatter(&alone).FormatQueryDocument(&ast.QueryDocument{
				Operations: ast.OperationList{operation}, Fragments: spreadIn(nil, operation.SelectionSet),
			})
			asked++
			_, errs := h.send(alone.String(), variables)
			if strings.Contains(string(errs), "TOO_COMPLEX") || strings.Contains(string(errs), "VALIDATION_FAILED") {
				t.Errorf("%s of %s: %s", operation.Name, name, errs)
			}
		}
	}
	if asked < 20 {
		t.Errorf("there are %d queries", asked)
	}
}

// spreadIn are the fragments of a selection, at any depth, beside known ones.
func spreadIn(known ast.FragmentDefinitionList, set ast.SelectionSet) ast.FragmentDefinitionList {
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			known = spreadIn(known, selected.SelectionSet)
		case *ast.InlineFragment:
			known = spreadIn(known, selected.SelectionSet)
		case *ast.FragmentSpread:
			if !slices.Contains(known, selected.Definition) {
				known = spreadIn(append(known, selected.Definition), selected.Definition.SelectionSet)
			}
		}
	}
	return known
}

// anyOf is a value of an input type: 500 of Int, which is the largest page.
func anyOf(schema *ast.Schema, of *ast.Type) any {
	if of.Elem != nil {
		return []any{anyOf(schema, of.Elem)}
	}
	switch definition := schema.Types[of.NamedType]; {
	case definition.Kind == ast.Enum:
		return definition.EnumValues[0].Name
	case definition.Kind == ast.InputObject:
		fields := map[string]any{}
		for _, field := range definition.Fields {
			if field.Type.NonNull {
				fields[field.Name] = anyOf(schema, field.Type)
			}
		}
		return fields
	case of.NamedType == "Int":
		return 500
	case of.NamedType == "Boolean":
		return true
	default:
		return "1"
	}
}
