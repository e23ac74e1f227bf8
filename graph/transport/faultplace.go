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

// placeOf completes what validation reports about the place of an error.
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
	found.find(document, shown.Locations[0])
	return found
}

// find looks in the operation or fragment that the location is in. A field of a fragment
// has the path that the first of its spreads gives it.
func (p *faultPlace) find(document *ast.QueryDocument, at gqlerror.Location) {
	var set ast.SelectionSet
	var start gqlerror.Location
	fragment := ""
	for _, of := range document.Operations {
		if begins(of.Position, at) && !begins(of.Position, start) {
			set, start = of.SelectionSet, location(of.Position)
		}
	}
	for _, of := range document.Fragments {
		if begins(of.Position, at) && !begins(of.Position, start) {
			set, start, fragment = of.SelectionSet, location(of.Position), of.Name
		}
	}
	p.within(set, spreads{document}.path(fragment, len(document.Fragments)), at)
}

// spreads finds where fragments are spread.
type spreads struct{ *ast.QueryDocument }

// path leads from an operation to the first spread of the fragment; nil: there is none.
func (s spreads) path(fragment string, levels int) ast.Path {
	if fragment == "" || levels == 0 {
		return nil
	}
	for _, of := range s.Operations {
		if path, found := spreadIn(of.SelectionSet, fragment); found {
			return path
		}
	}
	for _, of := range s.Fragments {
		if path, found := spreadIn(of.SelectionSet, fragment); found {
			return append(s.path(of.Name, levels-1), path...)
		}
	}
	return nil
}

func spreadIn(set ast.SelectionSet, fragment string) (path ast.Path, found bool) {
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			path, found = spreadIn(selected.SelectionSet, fragment)
			if found {
				return append(ast.Path{ast.PathName(selected.Alias)}, path...), true
			}
		case *ast.InlineFragment:
			path, found = spreadIn(selected.SelectionSet, fragment)
			if found {
				return path, true
			}
		case *ast.FragmentSpread:
			if selected.Name == fragment {
				return nil, true
			}
		}
	}
	return nil, false
}

func location(at *ast.Position) gqlerror.Location {
	return gqlerror.Location{Line: at.Line, Column: at.Column}
}

// within finds the last field, and its last argument, that begin at the location or
// before.
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
