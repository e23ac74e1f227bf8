package web

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

// TestTheGreetingPromisesNoSampleBesideAttachedClusters: on a restart the hub may have them.
func TestTheGreetingPromisesNoSampleBesideAttachedClusters(t *testing.T) {
	for sample, want := range map[bool]string{
		true: "isthmus v1 runs with a sample of two clusters, as long as you attach none.\n", false: "isthmus v1 runs.\n",
	} {
		var out strings.Builder
		if err := Greet(&out, Facts{Version: "v1", Sample: sample}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("with the sample %t: %v\n%s", sample, err, &out)
		}
	}
}
