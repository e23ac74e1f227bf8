package isthmus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// mostAssigned is how many values one statement may assign: of more, nobody sees which goes where.
const mostAssigned = 3

func TestAssignmentsHaveFewValues(t *testing.T) {
	for _, name := range filesOf(t, ".go") {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		if ast.IsGenerated(file) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Rhs) > mostAssigned {
				t.Errorf("%s assigns %d values, and %d are the most: write several statements", files.Position(a.Pos()), len(a.Rhs), mostAssigned)
			}
			return true
		})
	}
}
