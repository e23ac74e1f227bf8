package isthmus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestK83ProvidersAreAskedForTraits refuses code that compares a provider with a certain kind of registry, where a new
// kind would have to be added.
func TestK83ProvidersAreAskedForTraits(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	isKind := func(e ast.Expr) bool {
		s, is := e.(*ast.SelectorExpr)
		if !is {
			return false
		}
		room, is := s.X.(*ast.Ident)
		return is && room.Name == "federation" && slices.Contains([]string{"Kubernetes", "Consul", "Mock"}, s.Sel.Name)
	}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != ".":
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var compared []ast.Expr
			switch n := n.(type) {
			case *ast.BinaryExpr:
				compared = []ast.Expr{n.X, n.Y}
			case *ast.CaseClause:
				compared = n.List
			}
			if slices.ContainsFunc(compared, isKind) {
				t.Errorf("%s compares a provider with a kind of registry: ask for a trait of federation.Provider or of provider.Kind",
					files.Position(n.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
