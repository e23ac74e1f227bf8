package transport

import "github.com/vektah/gqlparser/v2/ast"

// oneRoot reports whether a validated selection set has one field in its answer. The
// parser's own rule takes two aliases of the same field for one.
func oneRoot(set ast.SelectionSet) bool {
	names := make(map[string]struct{})
	addRoots(set, names)
	return len(names) == 1
}

func addRoots(set ast.SelectionSet, names map[string]struct{}) {
	for _, selection := range set {
		switch selected := selection.(type) {
		case *ast.Field:
			names[selected.Alias] = struct{}{}
		case *ast.InlineFragment:
			addRoots(selected.SelectionSet, names)
		case *ast.FragmentSpread:
			addRoots(selected.Definition.SelectionSet, names)
		}
	}
}
