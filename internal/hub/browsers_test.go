package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// TestR45ExamplesOfTheEditorFitTheSchema: each has a name, which its tab shows.
func TestR45ExamplesOfTheEditorFitTheSchema(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "schema.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		document, err := parser.ParseQuery(&ast.Source{Input: example})
		if err != nil {
			t.Fatalf("%v in\n%s", err, example)
		}
		if errs := validator.ValidateWithRules(schema, document, rules.NewDefaultRules()); len(errs) > 0 || document.Operations[0].Name == "" {
			t.Errorf("%v in\n%s", errs, example)
		}
	}
}

func TestR45SettingsOfHostsAndOriginsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"graphql: {allowedHosts: [\"https://mesh.example.com\"]}":         "graphql.allowedHosts[0]",
		"graphql: {allowedHosts: [\"mesh.example.com:8080\"]}":            "graphql.allowedHosts[0]",
		"graphql: {allowedOrigins: [\"*\"]}":                              "graphql.allowedOrigins[0]",
		"graphql: {allowedOrigins: [\"https://*.example.com\"]}":          "graphql.allowedOrigins[0]",
		"graphql: {allowedOrigins: [\"https://dashboard.example.com/\"]}": "graphql.allowedOrigins[0]",
	} {
		c, err := parseConfig("config.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.GraphQL.checkHosts(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gets %v", text, err)
		}
	}
}
