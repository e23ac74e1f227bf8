package isthmus_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// mostAssigned is how many values one statement may assign: of more, nobody sees which goes where.
const mostAssigned = 3

// TestStatementsDoOneThing: an assignment has few values, unless one call returns them, and what stands before the condition of an if or
// switch declares what the condition is about, and changes nothing.
func TestStatementsDoOneThing(t *testing.T) {
	handwritten(t, func(s source) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			var before ast.Stmt
			switch n := n.(type) {
			case *ast.AssignStmt:
				if len(n.Lhs) > mostAssigned && len(n.Rhs) > 1 {
					t.Errorf("%s assigns %d values, and %d are the most: write several statements", s.files.Position(n.Pos()), len(n.Lhs), mostAssigned)
				}
			case *ast.IfStmt:
				before = n.Init
			case *ast.SwitchStmt:
				before = n.Init
			}
			if a, ok := before.(*ast.AssignStmt); before != nil && (!ok || a.Tok != token.DEFINE) {
				t.Errorf("%s changes something before a condition: write a statement of its own", s.files.Position(before.Pos()))
			}
			return true
		})
	})
}
