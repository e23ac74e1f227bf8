package graph_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/errcode"
)

// codeText is what codes of the API look like.
var codeText = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// codeName is what constants are called that are codes and have no type of their own.
var codeName = regexp.MustCompile(`^(code|Code|Reason|Explained)[A-Z]`)

// program is the source of the hub, tests and generated code apart.
type program struct {
	files  map[string]*ast.File // by path
	consts map[string]ast.Expr  // by room, a dot and the name
	// codeParams are where functions take a code, by their name.
	codeParams map[string][]int // by name of a function: the places of a parameter code in all functions of the name
}

func readProgram(t *testing.T) program {
	t.Helper()
	p := program{files: map[string]*ast.File{}, codeParams: map[string][]int{}, consts: map[string]ast.Expr{
		"errcode.ParseFailed":      &ast.BasicLit{Value: strconv.Quote(errcode.ParseFailed)},
		"errcode.ValidationFailed": &ast.BasicLit{Value: strconv.Quote(errcode.ValidationFailed)},
	}}
	root := os.DirFS("..")
	for _, room := range []string{"federation", "registries", "xds", "internal", "graph", "cmd"} {
		err := fs.WalkDir(root, room, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path.Join("..", name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err == nil && !ast.IsGenerated(file) {
				p.files[name] = file
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					p.consts[path.Dir(name)+"."+n.Names[i].Name] = value
				}
			case *ast.FuncDecl:
				if at := codeParam(n.Type); at >= 0 {
					p.codeParams[n.Name.Name] = append(p.codeParams[n.Name.Name], at)
				}
			}
			return true
		})
	}
	return p
}

// codeParam is the place of the parameter of the name code, or -1.
func codeParam(of *ast.FuncType) int {
	at := 0
	for _, field := range of.Params.List {
		for _, name := range field.Names {
			if name.Name == "code" {
				return at
			}
			at++
		}
	}
	return -1
}

// text is the value of an expression, or "" where only the run knows it.
func (p program) text(room string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, _ := strconv.Unquote(e.Value)
		return value
	case *ast.Ident:
		if value, known := p.consts[room+"."+e.Name]; known {
			return p.text(room, value)
		}
	case *ast.SelectorExpr:
		of, _ := e.X.(*ast.Ident)
		for name, value := range p.consts {
			if of != nil && path.Ext(name) == "."+e.Sel.Name && path.Base(strings.TrimSuffix(name, path.Ext(name))) == of.Name {
				return p.text(strings.TrimSuffix(name, path.Ext(name)), value)
			}
		}
	case *ast.CallExpr: // a conversion
		if len(e.Args) == 1 {
			return p.text(room, e.Args[0])
		}
	}
	return ""
}

// codes are all that the program gives as a code: the field Code of a value, an argument
// code, and constants of the types of codes; by code, where.
func (p program) codes() map[string]string {
	found := map[string]string{}
	for name, file := range p.files {
		room := path.Dir(name)
		add := func(e ast.Expr) {
			code := p.text(room, e)
			if room == "internal/kube" && code != "" { // as internal/attach shows it
				code = "KUBECONFIG_" + strings.ToUpper(strings.ReplaceAll(code, "-", "_"))
			}
			if codeText.MatchString(code) {
				found[code] = name
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
					add(n.Value)
				}
			case *ast.CallExpr:
				for _, at := range p.codeParams[lastName(n.Fun)] {
					if at < len(n.Args) {
						add(n.Args[at])
					}
				}
			case *ast.ValueSpec:
				if codeName.MatchString(n.Names[0].Name) || n.Type != nil && slices.Contains([]string{"Code", "ConflictKind"}, lastName(n.Type)) {
					for _, value := range n.Values {
						add(value)
					}
				}
			}
			return true
		})
	}
	return found
}

// lastName is the name of an identifier, or that after the dot.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
