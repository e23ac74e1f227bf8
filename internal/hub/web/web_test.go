package web

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// TestR45ExamplesOfTheEditorFitTheSchema: each has a name, which its tab shows.
func TestR45ExamplesOfTheEditorFitTheSchema(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "schema.graphql"))
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
