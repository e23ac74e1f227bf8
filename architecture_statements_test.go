package isthmus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// mostAssigned is how many values one statement may assign: of more, nobody sees which goes where.
const mostAssigned = 3

// TestStatementsDoOneThing: an assignment has few values, unless one call returns them, and what stands before the condition of an if or
// switch declares what the condition is about, and changes nothing.
func TestStatementsDoOneThing(t *testing.T) {
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
			var before ast.Stmt
			switch n := n.(type) {
			case *ast.AssignStmt:
				if len(n.Lhs) > mostAssigned && len(n.Rhs) > 1 {
					t.Errorf("%s assigns %d values, and %d are the most: write several statements", files.Position(n.Pos()), len(n.Lhs), mostAssigned)
				}
			case *ast.IfStmt:
				before = n.Init
			case *ast.SwitchStmt:
				before = n.Init
			}
			if a, ok := before.(*ast.AssignStmt); before != nil && (!ok || a.Tok != token.DEFINE) {
				t.Errorf("%s changes something before a condition: write a statement of its own", files.Position(before.Pos()))
			}
			return true
		})
	}
}
