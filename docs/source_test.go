package docs

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is the parsed code of a folder, tests apart.
func source(t *testing.T, dir string) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no code", dir)
	}
	return files
}

// walk visits all code of a folder.
func walk(t *testing.T, dir string, visit func(ast.Node)) {
	t.Helper()
	for _, f := range source(t, dir) {
		ast.Inspect(f, func(n ast.Node) bool {
			if n != nil {
				visit(n)
			}
			return true
		})
	}
}

// calls visits the calls of functions and methods of that name.
func calls(t *testing.T, dir, name string, visit func(args []ast.Expr)) {
	t.Helper()
	walk(t, dir, func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			ok = f.Name == name
		case *ast.SelectorExpr:
			ok = f.Sel.Name == name
		default:
			ok = false
		}
		if ok {
			visit(call.Args)
		}
	})
}

// text returns the value of a string literal, "" for anything else.
func text(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
		if value, err := strconv.Unquote(literal.Value); err == nil {
			return value
		}
	}
	return ""
}

// constants returns the string constants that fit by name and declared type.
func constants(t *testing.T, dir string, fits func(name, typ string) bool) []string {
	t.Helper()
	found := map[string]bool{}
	walk(t, dir, func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return
		}
		typ := ""
		if id, named := spec.Type.(*ast.Ident); named {
			typ = id.Name
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !fits(name.Name, typ) {
				continue
			}
			if value := valueOf(t, spec.Values[i]); value != "" {
				found[value] = true
			}
		}
	})
	if len(found) == 0 {
		t.Fatalf("%s has no such constants", dir)
	}
	return slices.Sorted(maps.Keys(found))
}

// valueOf is the text that a literal is, or a constant of federation.
func valueOf(t *testing.T, e ast.Expr) string {
	t.Helper()
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return text(e)
	}
	if from, is := selector.X.(*ast.Ident); !is || from.Name != "federation" {
		return ""
	}
	return constants(t, "../federation", func(name, _ string) bool { return name == selector.Sel.Name })[0]
}

func ofType(want string) func(name, typ string) bool {
	return func(_, typ string) bool { return typ == want }
}

// resourcesRead are the resources that a hub lists and watches in Kubernetes.
func resourcesRead(t *testing.T) []string {
	t.Helper()
	var found []string
	calls(t, "../registries/kubernetes", "define", func(args []ast.Expr) { found = append(found, text(args[1])) })
	slices.Sort(found)
	if len(found) < 5 {
		t.Fatalf("found %v", found)
	}
	return found
}

// to dials one address, whatever is asked for.
func to(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}
