package isthmus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// mostMethods is how many methods a type may have. What needs more does the work of
// several types, and its methods may all call each other (ADR 0040).
const mostMethods = 25

func TestTypesHaveFewMethods(t *testing.T) {
	for of, n := range countMethods(t) {
		if n > mostMethods {
			t.Errorf("%s has %d methods, and %d are the most: give parts of it a type of their own, or make them functions over values",
				of, n, mostMethods)
		}
	}
}

// typeMethods are the methods that a type declares, and the types of its package that
// it embeds: their methods are its own.
type typeMethods struct {
	declared int
	embedded []string
}

// countMethods counts the methods of each type that is not generated, tests apart.
func countMethods(t *testing.T) map[string]int {
	t.Helper()
	types := map[string]*typeMethods{}
	for _, name := range filesOf(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		if !ast.IsGenerated(file) {
			readMethods(file, path.Dir(name), types)
		}
	}
	methods := map[string]int{}
	for of := range types {
		methods[of] = allMethods(of, types)
	}
	return methods
}

func allMethods(of string, types map[string]*typeMethods) int {
	if types[of] == nil {
		return 0
	}
	n := types[of].declared
	for _, e := range types[of].embedded {
		n += allMethods(e, types)
	}
	return n
}

func readMethods(file *ast.File, room string, types map[string]*typeMethods) {
	at := func(e ast.Expr) (string, *typeMethods) {
		of := room + "." + typeName(e)
		if types[of] == nil {
			types[of] = &typeMethods{}
		}
		return of, types[of]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				_, of := at(n.Recv.List[0].Type)
				of.declared++
			}
			return false
		case *ast.TypeSpec:
			s, is := n.Type.(*ast.StructType)
			if !is {
				return false
			}
			_, of := at(n.Name)
			for _, f := range s.Fields.List {
				if len(f.Names) == 0 {
					embedded, _ := at(f.Type)
					of.embedded = append(of.embedded, embedded)
				}
			}
			return false
		}
		return true
	})
}

// typeName is the name of a type of the package, without its pointer and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "of another package"
}
