package graph_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"isthmus.dev/isthmus/graph"
)

func publicSchema(t testing.TB) *ast.Schema {
	t.Helper()
	schema, err := loadSchema()
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

var loadSchema = sync.OnceValues(func() (*ast.Schema, error) {
	text, err := os.ReadFile(filepath.Join("..", "schema.graphql"))
	if err != nil {
		return nil, err
	}
	return gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
})

// ours yields the types that the project declares.
func ours(schema *ast.Schema, each func(*ast.Definition)) {
	for _, definition := range schema.Types {
		if !definition.BuiltIn {
			each(definition)
		}
	}
}

func TestEverythingInTheSchemaIsDescribed(t *testing.T) {
	described := func(what, text string) {
		if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, ".\n") {
			t.Errorf("%s has no description of whole sentences: %q", what, text)
		}
	}
	ours(publicSchema(t), func(definition *ast.Definition) {
		described(definition.Name, definition.Description)
		for _, field := range definition.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			described(definition.Name+"."+field.Name, field.Description)
			for _, argument := range field.Arguments {
				described(definition.Name+"."+field.Name+"("+argument.Name+")", argument.Description)
			}
		}
		for _, value := range definition.EnumValues {
			described(definition.Name+"."+value.Name, value.Description)
			if value.Name != strings.ToUpper(value.Name) {
				t.Errorf("%s.%s is not in capitals", definition.Name, value.Name)
			}
		}
	})
}

func TestGeneratedCodeIsOfThisSchema(t *testing.T) {
	text := func(schema *ast.Schema) string {
		var out strings.Builder
		formatter.NewFormatter(&out).FormatSchema(schema)
		return out.String()
	}
	if text(publicSchema(t)) != text(graph.New(graph.Options{Snapshots: &source{}}).Schema()) {
		t.Error("schema.graphql has changed since graph/generated was made; run go generate ./graph")
	}
}

func TestScalarsSayWhatTheyAre(t *testing.T) {
	ours(publicSchema(t), func(definition *ast.Definition) {
		if definition.Kind == ast.Scalar && definition.Directives.ForName("specifiedBy") == nil {
			t.Errorf("the scalar %s has no @specifiedBy", definition.Name)
		}
	})
}

func TestConnectionsHaveTheShapeOfRelay(t *testing.T) {
	schema := publicSchema(t)
	connections := 0
	ours(schema, func(definition *ast.Definition) {
		if node, ok := strings.CutSuffix(definition.Name, "Connection"); ok {
			connections++
			fields := map[string]string{
				"edges": "[" + node + "Edge!]!", "nodes": "[" + node + "!]!", "pageInfo": "PageInfo!", "totalCount": "Int!",
			}
			if node == "ConfigObjectRevision" {
				fields["compacted"] = "Boolean!" // a list of which the end may be missing
			}
			fieldsAre(t, definition, fields)
			fieldsAre(t, schema.Types[node+"Edge"], map[string]string{"cursor": "String!", "node": node + "!"})
		}
		for _, field := range definition.Fields {
			if !strings.HasSuffix(field.Type.Name(), "Connection") {
				continue
			}
			for name, want := range map[string]string{"first": "Int", "after": "String", "last": "Int", "before": "String"} {
				argument := field.Arguments.ForName(name)
				if argument == nil || argument.Type.String() != want || argument.DefaultValue != nil {
					t.Errorf("%s.%s has no argument %s: %s without a default", definition.Name, field.Name, name, want)
				}
			}
		}
	})
	if connections == 0 {
		t.Error("there is no connection")
	}
	fieldsAre(t, schema.Types["PageInfo"], map[string]string{
		"hasNextPage": "Boolean!", "hasPreviousPage": "Boolean!", "startCursor": "String", "endCursor": "String",
	})
}

func fieldsAre(t *testing.T, definition *ast.Definition, want map[string]string) {
	t.Helper()
	if definition == nil {
		t.Errorf("a type with the fields %v is missing", want)
		return
	}
	for name, kind := range want {
		if field := definition.Fields.ForName(name); field == nil || field.Type.String() != kind {
			t.Errorf("%s has no field %s: %s", definition.Name, name, kind)
		}
	}
	if len(definition.Fields) != len(want) {
		t.Errorf("%s has %d fields, want %d", definition.Name, len(definition.Fields), len(want))
	}
}

// TestArgumentsNeedNoScalarsOfOurs: clients send String, Int, Float, Boolean,
// ID, enums and inputs.
func TestArgumentsNeedNoScalarsOfOurs(t *testing.T) {
	schema := publicSchema(t)
	check := func(where string, kind *ast.Type) {
		if definition := schema.Types[kind.Name()]; definition.Kind == ast.Scalar && !definition.BuiltIn {
			t.Errorf("%s is of the scalar %s", where, definition.Name)
		}
	}
	ours(schema, func(definition *ast.Definition) {
		for _, field := range definition.Fields {
			if definition.Kind == ast.InputObject {
				check(definition.Name+"."+field.Name, field.Type)
			}
			for _, argument := range field.Arguments {
				check(definition.Name+"."+field.Name+"("+argument.Name+")", argument.Type)
			}
		}
	})
}

// contract returns the operations that clients send word for word, by name.
func contract(t *testing.T) map[string]string {
	t.Helper()
	operations, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	return maps.Clone(operations)
}

var loadContract = sync.OnceValues(func() (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join("testdata", "contract", "*.graphql"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errors.New("testdata/contract has no operations"), err)
	}
	schema, err := loadSchema()
	if err != nil {
		return nil, err
	}
	operations := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		document, errs := gqlparser.LoadQueryWithRules(schema, string(text), rules.NewDefaultRules())
		if len(errs) > 0 {
			return nil, fmt.Errorf("%s does not fit the schema: %w", file, errs)
		}
		for _, operation := range document.Operations {
			operations[operation.Name] = operationText(string(text), operation.Name)
		}
	}
	return operations, nil
})

var operationStart = regexp.MustCompile(`(?m)^(query|mutation|subscription) (\w+)\b`)

// operationText cuts one operation out of a file; each begins a line.
func operationText(text, name string) string {
	for _, found := range operationStart.FindAllStringSubmatchIndex(text, -1) {
		if text[found[4]:found[5]] != name {
			continue
		}
		whole := text[found[0]:]
		if next := operationStart.FindStringIndex(whole[1:]); next != nil {
			whole = whole[:1+next[0]]
		}
		return whole
	}
	return ""
}

func TestContractFitsTheSchema(t *testing.T) {
	operations := contract(t)
	for _, name := range []string{
		"Overview", "Clusters", "AttachCluster", "RotateCluster", "ConfirmCluster", "DetachCluster", "Service", "Services",
		"Proxies", "Explain", "ProxyConfig",
		"Apply", "Delete", "ConfigObjects", "Rollback", "History", "Changes",
	} {
		if operations[name] == "" {
			t.Errorf("the contract has no %s", name)
		}
	}
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

// TestR41WhatMayFailAloneIsNullable: an error of such a field does not make the
// answer null beside it.
func TestR41WhatMayFailAloneIsNullable(t *testing.T) {
	schema := publicSchema(t)
	for _, field := range schema.Query.Fields {
		if strings.HasSuffix(field.Type.Name(), "Connection") && field.Type.NonNull {
			t.Errorf("Query.%s is not nullable", field.Name)
		}
	}
	for typeName, names := range map[string][]string{
		"Query": {"configObject", "configSources"}, "ConfigObject": {"history"},
		"ApplyPayload": {"rollout"}, "DeletePayload": {"rollout"}, "RollbackPayload": {"rollout"},
	} {
		for _, name := range names {
			if field := schema.Types[typeName].Fields.ForName(name); field == nil || field.Type.NonNull {
				t.Errorf("%s.%s is not nullable", typeName, name)
			}
		}
	}
}
