package transport

import (
	"context"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// documentKey is the name under which an operation keeps its document, which may not
// be valid.
const documentKey = "isthmus.document"

// faultPlace is where a fault of a document or of its variables is.
type faultPlace struct {
	path      ast.Path
	argument  string
	locations []gqlerror.Location
	text      string // of the fault, which names an argument that is not declared
}

// placeOf completes what validation says of the place of an error.
func placeOf(ctx context.Context, shown *gqlerror.Error) faultPlace {
	found := faultPlace{locations: shown.Locations, text: shown.Message}
	if !graphql.HasOperationContext(ctx) {
		return found
	}
	operation := graphql.GetOperationContext(ctx)
	if len(shown.Path) > 1 && shown.Path[0] == ast.PathName("variable") { // as validator.VariableValues begins it
		found.argument = "$" + strings.TrimPrefix(shown.Path[1:].String(), ".")
		if name, ok := shown.Path[1].(ast.PathName); ok && operation.Operation != nil {
			if of := operation.Operation.VariableDefinitions.ForName(string(name)); of != nil {
				found.locations = []gqlerror.Location{location(of.Position)}
			}
		}
		return found
	}
	document, _ := operation.Stats.GetExtension(documentKey).(*ast.QueryDocument)
	if document == nil || len(shown.Locations) == 0 {
		return found
	}
	at := shown.Locations[0]
	for _, of := range document.Operations {
		found.within(of.SelectionSet, nil, at)
	}
	return found
}

func location(at *ast.Position) gqlerror.Location {
	return gqlerror.Location{Line: at.Line, Column: at.Column}
}

// within finds the last field, and its last argument, that begin at the location or
// before. Fields of fragments have several paths, and none is named for them.
func (p *faultPlace) within(set ast.SelectionSet, path ast.Path, at gqlerror.Location) {
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			if !begins(selected.Position, at) {
				continue
			}
			p.path, p.argument = append(path[:len(path):len(path)], ast.PathName(selected.Alias)), ""
			for _, argument := range selected.Arguments {
				unknown := location(selected.Position) == at && strings.Contains(p.text, `argument "`+argument.Name+`"`)
				if unknown || begins(argument.Position, at) {
					p.argument = argument.Name + inner(argument.Value, at)
				}
			}
			p.within(selected.SelectionSet, p.path, at)
		case *ast.InlineFragment:
			p.within(selected.SelectionSet, path, at)
		}
	}
}

// inner is the path of the field of an input object that begins last.
func inner(value *ast.Value, at gqlerror.Location) string {
	found := ""
	for _, child := range value.Children {
		if value.Kind == ast.ObjectValue && begins(child.Position, at) {
			found = "." + child.Name + inner(child.Value, at)
		}
	}
	return found
}

func begins(position *ast.Position, at gqlerror.Location) bool {
	return position != nil && (position.Line < at.Line || position.Line == at.Line && position.Column <= at.Column)
}
