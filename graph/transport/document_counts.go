package transport

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// documentCounts counts what is written in a document, each fragment once.
type documentCounts struct {
	aliases, directives int
	name                int    // Bytes of the longest name.
	fault               string // What no client may send, or "".
}

func (t *documentCounts) document(document *ast.QueryDocument) {
	for _, operation := range document.Operations {
		t.names(operation.Name)
		t.used(operation.Directives)
		for _, variable := range operation.VariableDefinitions {
			t.names(variable.Variable, variable.Type.Name())
			t.used(variable.Directives)
			t.value(variable.DefaultValue)
		}
		t.set(operation.SelectionSet)
	}
	for _, fragment := range document.Fragments {
		t.names(fragment.Name, fragment.TypeCondition)
		t.used(fragment.Directives)
		t.set(fragment.SelectionSet)
	}
}

func (t *documentCounts) set(set ast.SelectionSet) {
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			if selected.Alias != selected.Name {
				t.aliases++
			}
			t.names(selected.Name, selected.Alias)
			t.used(selected.Directives)
			t.arguments(selected.Arguments)
			t.set(selected.SelectionSet)
		case *ast.InlineFragment:
			t.names(selected.TypeCondition)
			t.used(selected.Directives)
			t.set(selected.SelectionSet)
		case *ast.FragmentSpread:
			t.names(selected.Name)
			t.used(selected.Directives)
		}
	}
}

func (t *documentCounts) used(directives ast.DirectiveList) {
	t.directives += len(directives)
	for _, directive := range directives {
		t.names(directive.Name)
		if directive.Name == "defer" || directive.Name == "stream" {
			t.fault = "the directives @defer and @stream are not offered"
		}
		t.arguments(directive.Arguments)
	}
}

func (t *documentCounts) names(names ...string) {
	for _, name := range names {
		t.name = max(t.name, len(name))
	}
}

func (t *documentCounts) arguments(arguments ast.ArgumentList) {
	for _, argument := range arguments {
		t.names(argument.Name)
		t.value(argument.Value)
	}
}

// value finds numbers that no type of the schema can hold.
func (t *documentCounts) value(value *ast.Value) {
	if value == nil {
		return
	}
	var err error
	switch value.Kind {
	case ast.IntValue:
		_, err = strconv.ParseInt(value.Raw, 10, 64)
	case ast.FloatValue:
		_, err = strconv.ParseFloat(value.Raw, 64)
	case ast.EnumValue, ast.Variable:
		t.names(value.Raw)
	}
	if err != nil {
		t.fault = "a number is out of the range of every type"
	}
	for _, child := range value.Children {
		t.names(child.Name)
		t.value(child.Value)
	}
}
