package isthmus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mostMethods is how many methods a type may have. What needs more does the work of
// several types, and its methods may all call each other (ADR 0040).
const mostMethods = 25

// TestK87TypesHaveFewMethods: those that a type has from what it embeds count, whatever room that is of.
func TestK87TypesHaveFewMethods(t *testing.T) {
	for of, n := range countMethods(t) {
		if n > mostMethods {
			t.Errorf("%s has %d methods, and %d are the most: give parts of it a type of their own, or make them functions over values",
				of, n, mostMethods)
		}
	}
}

// typeMethods are the methods that a type declares, and the types of all rooms that it
// embeds: their methods are its own. Types of other modules have none here.
type typeMethods struct {
	declared map[string]bool
	embedded []string
}

// countMethods counts the methods of each type that is not generated, tests apart.
func countMethods(t *testing.T) map[string]int {
	t.Helper()
	types := map[string]*typeMethods{}
	handwritten(t, func(s source) {
		if !strings.HasSuffix(s.path, "_test.go") {
			readMethods(s.file, s.room(), types)
		}
	})
	methods := map[string]int{}
	for of := range types {
		methods[of] = len(allMethods(of, types))
	}
	return methods
}

// allMethods are the names of the methods of a type. Of a type of another room it has the exported ones.
func allMethods(of string, types map[string]*typeMethods) map[string]bool {
	all := map[string]bool{}
	if types[of] == nil {
		return all
	}
	maps.Copy(all, types[of].declared)
	for _, e := range types[of].embedded {
		for name := range allMethods(e, types) {
			if roomOf(e) == roomOf(of) || ast.IsExported(name) {
				all[name] = true
			}
		}
	}
	return all
}

func readMethods(file *ast.File, room string, types map[string]*typeMethods) {
	rooms := roomsOf(file)
	at := func(e ast.Expr) (string, *typeMethods) {
		in, name := typeName(e)
		of := room + "." + name
		if in != "" {
			of = rooms[in] + "." + name
		}
		if types[of] == nil {
			types[of] = &typeMethods{declared: map[string]bool{}}
		}
		return of, types[of]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				_, of := at(n.Recv.List[0].Type)
				of.declared[n.Name.Name] = true
			}
			return false
		case *ast.TypeSpec:
			fields, isInterface := fieldsOf(n.Type)
			_, of := at(n.Name)
			for _, f := range fields {
				switch {
				case len(f.Names) == 0:
					embedded, _ := at(f.Type)
					of.embedded = append(of.embedded, embedded)
				case isInterface:
					of.declared[f.Names[0].Name] = true
				}
			}
			return false
		}
		return true
	})
}

// roomOf is the room of a type.
func roomOf(of string) string { return of[:strings.LastIndexByte(of, '.')] }

// fieldsOf are the fields of a struct, or the methods of an interface.
func fieldsOf(e ast.Expr) (fields []*ast.Field, isInterface bool) {
	switch e := e.(type) {
	case *ast.StructType:
		return e.Fields.List, false
	case *ast.InterfaceType:
		return e.Methods.List, true
	}
	return nil, false
}

// roomsOf are the rooms that the file imports, by the names that it has for them. Other packages have none.
func roomsOf(file *ast.File) map[string]string {
	rooms := map[string]string{}
	for _, i := range file.Imports {
		at, err := strconv.Unquote(i.Path.Value)
		room, ours := strings.CutPrefix(at, module)
		if err != nil || !ours {
			continue
		}
		name := path.Base(at)
		if i.Name != nil {
			name = i.Name.Name
		}
		rooms[name] = room
	}
	return rooms
}

// typeName is the name of a type without its pointer and parameters, and the name that the file has for its
// package; empty for its own.
func typeName(e ast.Expr) (in, name string) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return "", e.Name
	case *ast.SelectorExpr:
		if of, is := e.X.(*ast.Ident); is {
			return of.Name, e.Sel.Name
		}
	}
	return "", "of another form"
}

// TestK87EmbeddedMethodsCount: an interface, and a type of another room by its exported methods, once each.
func TestK87EmbeddedMethodsCount(t *testing.T) {
	types := map[string]*typeMethods{}
	for room, text := range map[string]string{
		"low": "package low\ntype T struct{}\nfunc (*T) A() {}\nfunc (T) b() {}\ntype I interface{ C(); A() }",
		"high/up": "package up\nimport other \"" + module + "low\"\ntype U struct { *other.T; other.I; own }\n" +
			"type own struct{}\nfunc (own) d() {}\nfunc (U) A() {}",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), room, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		readMethods(file, room, types)
	}
	for of, want := range map[string][]string{"low.T": {"A", "b"}, "low.I": {"A", "C"}, "high/up.U": {"A", "C", "d"}} {
		if got := slices.Sorted(maps.Keys(allMethods(of, types))); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", of, got, want)
		}
	}
}
