package graph_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"go.yaml.in/yaml/v3"

	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/transport"
)

// everything selects all fields of a type, the arguments apart.
func everything(schema *ast.Schema, name string, depth int) string {
	var out strings.Builder
	for _, field := range schema.Types[name].Fields {
		of := schema.Types[field.Type.Name()]
		switch {
		case strings.HasPrefix(field.Name, "__"), isLookedUp(name, field.Name):
		case of.Kind != ast.Object:
			out.WriteString(field.Name + " ")
		case depth > 0:
			out.WriteString(field.Name + " {" + everything(schema, of.Name, depth-1) + "} ")
		}
	}
	return out.String() + "__typename "
}

// isLookedUp reports whether a resolver answers the field, and the executor writes it.
func isLookedUp(name, field string) bool {
	writes := graph.WritesAsAWhole()[name]
	return resolvers()[name][field] && (writes == nil || !writes(field))
}

// resolvers are the fields that have resolvers, by type.
var resolvers = sync.OnceValue(func() map[string]map[string]bool {
	text, err := os.ReadFile("../gqlgen.yml")
	if err != nil {
		panic(err)
	}
	var config struct {
		Models map[string]struct {
			Fields map[string]struct{ Resolver bool }
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		panic(err)
	}
	all := map[string]map[string]bool{}
	for name, of := range config.Models {
		all[name] = map[string]bool{}
		for field, is := range of.Fields {
			all[name][field] = is.Resolver
		}
	}
	return all
})

// TestR64WhatIsWrittenAsAWholeIsWhatTheExecutorWrites: byte by byte, errors
// included.
func TestR64WhatIsWrittenAsAWholeIsWhatTheExecutorWrites(t *testing.T) {
	whole := graph.New(graph.Options{Snapshots: &source{fixture(t)}})
	schema := whole.Schema()
	service, endpoint := everything(schema, "Service", 3), everything(schema, "Endpoint", 1)
	for name, writes := range graph.WritesAsAWhole() {
		for _, field := range schema.Types[name].Fields {
			if !strings.HasPrefix(field.Name, "__") && !isLookedUp(name, field.Name) && !writes(field.Name) {
				t.Errorf("%s.%s is not written as a part of the whole", name, field.Name)
			}
		}
	}
	for _, query := range []string{
		"{services(first:200){totalCount pageInfo{hasNextPage hasPreviousPage startCursor endCursor} nodes{" + service + "}}}",
		"{services(last:3){edges{cursor node{" + service + "}}}}",
		`{service(hostname:"WEB.shop.svc.cluster.local", namespace:"shop"){` + service + "}}",
		`{service(hostname:"none.example.com"){` + service + "}}",
		`{clusters{nodes{clusterID services(first:2){nodes{hostname}} endpoints(first:3){nodes{` + endpoint + "}}}}}",
		`{services(first:2){nodes{a:hostname ...F ... on Service @skip(if:true){id} ... on Node{b:id}}}} fragment F on Service{a:hostname endpoints(first:1){c:totalCount edges{cursor node{address}}}}`,
		`{services(first:2){nodes{endpoints(filter:{clusterID:"c2"}){totalCount nodes{address}}}}}`,
		`{services(first:1){nodes{hostname endpoints(after:"none"){totalCount}}}}`,
		`{services(after:"none"){totalCount} hub{version}}`,
		`{node(id:"x"){... on Service{hostname}}}`,
		`{services(first:2){nodes{clusterVIPs{cluster{clusterID}} endpoints(first:1){nodes{address cluster{clusterID network{networkID}} service{hostname}}}}}}`,
		`{services(first:2){nodes{hostname ports{number clusters{clusterID}} conflicts{clusters{clusterID}} proxies(first:1){totalCount}}}}`,
	} {
		want, got := answerOf(t, graph.ByField(whole), query), answerOf(t, whole, query)
		if !bytes.Equal(got, want) {
			t.Errorf("%s gets\n%s\nthe executor writes\n%s", query, got, want)
		}
	}
}

func answerOf(t testing.TB, schema graphql.ExecutableSchema, query string) []byte {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(fmt.Sprintf(`{"query":%q}`, query)))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	transport.New(schema, transport.Options{}).ServeHTTP(recorder, request)
	return bytes.ReplaceAll(recorder.Body.Bytes(), []byte(recorder.Header().Get("X-Request-Id")), nil)
}

// page is a page of 100 services with their endpoints.
const page = "{ services(first: 100) { totalCount pageInfo { hasNextPage endCursor } nodes { hostname namespace resolution clusterVIPs { clusterID addresses }" +
	" ports { name number protocol } endpoints(first: 10) { totalCount nodes { address clusterID networkID health weight ports { name number } } } } } }"

// TestR64PageOfServicesIsWrittenAsAWhole: its allocations are a fraction of what
// the executor needs for the same bytes, field by field.
func TestR64PageOfServicesIsWrittenAsAWhole(t *testing.T) {
	whole := graph.New(graph.Options{Snapshots: &source{fixture(t)}})
	count := func(schema graphql.ExecutableSchema) float64 {
		return testing.AllocsPerRun(3, func() { answerOf(t, schema, page) })
	}
	if field, all := count(graph.ByField(whole)), count(whole); all*4 > field {
		t.Errorf("it takes %.0f allocations, and %.0f field by field", all, field)
	}
}

// TestR63ChangesAreWrittenAsAWhole: the executor starts a goroutine for each of them, and
// holds many times their text until the last is written. The bytes are the same.
func TestR63ChangesAreWrittenAsAWhole(t *testing.T) {
	c := newConfigured(t, nil)
	c.apply(route("shop", "old", "x"))
	manifests := []string{route("shop", "old", "y")}
	for i := range 100 {
		manifests = append(manifests, route("shop", fmt.Sprint("new-", i), "x"))
	}
	whole := graph.New(c.options)
	asking := func(fields string) string {
		return fmt.Sprintf("mutation{apply(input:{dryRun:true manifests:%q}){changes{%s}}}", strings.Join(manifests, "\n---\n"), fields)
	}
	shown := "__typename action object{a:name __typename " + fieldsOfClient(t) + "}"
	for _, fields := range []string{shown, shown + " diff", "object{name current{name}}", "...on ConfigChange{action}"} {
		want, got := answerOf(t, graph.ByField(whole), asking(fields)), answerOf(t, whole, asking(fields))
		if !bytes.Equal(got, want) || !bytes.Contains(got, []byte(`"changes":[{`)) {
			t.Errorf("%s gets\n%s\nthe executor writes\n%s", fields, got, want)
		}
	}
	count := func(schema graphql.ExecutableSchema, fields string) float64 {
		return testing.AllocsPerRun(3, func() { answerOf(t, schema, asking(fields)) })
	}
	least := count(whole, "action")
	if field, all := count(graph.ByField(whole), shown)-least, count(whole, shown)-least; all*20 > field {
		t.Errorf("the objects of changes take %.0f allocations, and %.0f field by field", all, field)
	}
}

// fieldsOfClient are what the command line asks about each object: what it asks beside what is
// written as a whole would go through the executor.
func fieldsOfClient(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../client/operations.graphql")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(text), "fragment Ref on ObjectRef {")
	fields, _, found := strings.Cut(fields, "}")
	if !found {
		t.Fatal("the client has another fragment")
	}
	return fields
}

func BenchmarkPage(b *testing.B) {
	whole := graph.New(graph.Options{Snapshots: &source{fixture(b)}})
	for b.Loop() {
		answerOf(b, whole, page)
	}
}
