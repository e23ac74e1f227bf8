package isthmus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is a Go file of the tree.
type source struct {
	path  string
	file  *ast.File
	files *token.FileSet
}

// parsed are all Go files, tests included, in the order of their paths.
var parsed = sync.OnceValues(func() (all []source, err error) {
	names, err := find(".go")
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	for _, name := range names {
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, source{name, file, files})
	}
	return all, nil
})

// handwritten calls back with each Go file that somebody writes, tests included.
func handwritten(t *testing.T, each func(source)) {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if !ast.IsGenerated(s.file) {
			each(s)
		}
	}
}

// sources calls back with each Go file that is neither generated nor for tests alone.
func sources(t *testing.T, each func(source)) {
	t.Helper()
	handwritten(t, func(s source) {
		if !strings.HasSuffix(s.path, "_test.go") && !strings.Contains(s.path, "test/") {
			each(s)
		}
	})
}

// room is the folder of the file.
func (s source) room() string { return path.Dir(s.path) }

// names reports whether the expression is one of the names of a room, whatever the file calls it.
func (s source) names(e ast.Expr, room string, names []string) bool {
	if of, is := e.(*ast.Ident); is {
		return s.room() == room && slices.Contains(names, of.Name)
	}
	of, is := e.(*ast.SelectorExpr)
	if !is || !slices.Contains(names, of.Sel.Name) {
		return false
	}
	by, is := of.X.(*ast.Ident)
	return is && slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool {
		imported, _ := strconv.Unquote(i.Path.Value)
		called := path.Base(imported)
		if i.Name != nil {
			called = i.Name.Name
		}
		return called == by.Name && imported == "isthmus.dev/isthmus/"+room
	})
}

// compared are what is compared with something in the node.
func compared(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return []ast.Expr{n.X, n.Y}
	case *ast.CaseClause:
		return n.List
	}
	return nil
}

// TestK83ProvidersAreAskedForTraits refuses code that compares a provider with a certain kind of registry, where a new
// kind would have to be added. The traits themselves are methods of the provider.
func TestK83ProvidersAreAskedForTraits(t *testing.T) {
	t.Parallel()
	sources(t, func(s source) {
		isKind := func(e ast.Expr) bool {
			return s.names(e, "federation", []string{"Kubernetes", "Consul", "External", "MCP", "Mock"})
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if of, is := n.(*ast.FuncDecl); is && of.Recv != nil && s.names(of.Recv.List[0].Type, "federation", []string{"Provider"}) {
				return false
			}
			if slices.ContainsFunc(compared(n), isKind) {
				t.Errorf("%s compares a provider with a certain one: ask for a trait of federation.Provider or of provider.Kind",
					s.files.Position(n.Pos()))
			}
			return true
		})
	})
}

// typeRoom has the table of xDS types.
const typeRoom = "xds/envoy/resource"

// TestK84TypesAreAskedForTraits refuses code that compares a type of xDS with a certain one, lists some, or writes the URL
// of one: a new type would have to be added there. What depends on a type asks for a trait of its row, or has a row for
// each type itself (a map by type).
func TestK84TypesAreAskedForTraits(t *testing.T) {
	t.Parallel()
	var names, urls []string
	sources(t, func(s source) {
		if s.path != typeRoom+"/type.go" {
			return
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			if of, is := spec.Type.(*ast.Ident); is && of.Name == "Type" {
				url, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				names, urls = append(names, spec.Names[0].Name), append(urls, url)
			}
			return true
		})
	})
	if len(names) < 8 || !slices.Contains(names, "ClusterType") {
		t.Fatalf("the types of xDS are not found: %v", names)
	}
	sources(t, func(s source) {
		if s.room() == typeRoom {
			return
		}
		isType := func(e ast.Expr) bool { return s.names(e, typeRoom, names) || s.names(e, "xds/envoy", names) }
		ast.Inspect(s.file, func(n ast.Node) bool {
			at := func(problem string) {
				t.Errorf("%s %s: ask for a trait of resource.Type, or have a row for each type", s.files.Position(n.Pos()), problem)
			}
			if slices.ContainsFunc(compared(n), isType) {
				at("compares a type of xDS with a certain one")
			}
			switch n := n.(type) {
			case *ast.CompositeLit:
				if of, is := n.Type.(*ast.ArrayType); is && slices.ContainsFunc(n.Elts, isType) {
					if s.names(of.Elt, typeRoom, []string{"Type"}) || s.names(of.Elt, "xds/envoy", []string{"Type"}) {
						at("lists types of xDS")
					}
				}
			case *ast.BasicLit:
				text, _ := strconv.Unquote(n.Value)
				if n.Kind == token.STRING && slices.ContainsFunc(urls, func(url string) bool { return strings.Contains(text, url) }) {
					at("writes the URL of a type of xDS")
				}
			}
			return true
		})
	})
}

// otherWords are names of kinds that mean something else in a room.
var otherWords = map[string][]string{
	"graph/model":           {"Cluster", "Network"},              // nodes of the graph
	"internal/cli/describe": {"Cluster", "Namespace", "Network"}, // headings
	"internal/cli/get":      {"Cluster", "Network"},              // kinds of the hub's API
	"internal/cli/proxy":    {"ProxyConfig"},                     // the same
	"registries/consul":     {"Cluster", "Namespace"},            // fields of name templates
}

// TestK85KindsAreNamedOnce refuses code that writes the name of a kind of configuration. One variable names it, of federation
// or of the kind's row in federation/config/kind, and all other code uses that variable.
func TestK85KindsAreNamedOnce(t *testing.T) {
	t.Parallel()
	constants, declared := map[string]string{}, map[federationKind]token.Position{}
	names, used := map[string]bool{}, map[string]bool{}
	declares := func(s source) bool { return s.room() == "federation" || s.room() == "federation/config/kind" }
	sources(t, func(s source) {
		if declares(s) {
			s.constants(constants)
		}
	})
	sources(t, func(s source) {
		if !declares(s) {
			return
		}
		for _, of := range s.kinds() {
			kind := federationKind{value(of.group, constants), value(of.name, constants)}
			at := s.files.Position(of.name.Pos())
			if first, twice := declared[kind]; twice {
				t.Errorf("%s names %s of %q again, after %s: use that variable", at, kind.name, kind.group, first)
			}
			declared[kind], names[kind.name] = at, true
		}
	})
	if len(names) < 20 || !names["VirtualService"] || !names["HTTPRoute"] || !names["Drain"] {
		t.Fatalf("the kinds of configuration are not found: %v", names)
	}
	places := map[token.Position]bool{}
	for _, at := range declared {
		places[at] = true
	}
	sources(t, func(s source) {
		if strings.HasSuffix(s.path, ".gen.go") || strings.HasPrefix(s.path, "deploy/") || strings.HasPrefix(s.path, "docs/testdata/") {
			return
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			of, is := n.(*ast.BasicLit)
			if !is || of.Kind != token.STRING || places[s.files.Position(of.Pos())] {
				return true
			}
			text := value(of, nil)
			name := text[strings.LastIndex(text, "/")+1:]
			switch {
			case !names[name]:
			case slices.Contains(otherWords[s.room()], name):
				used[s.room()+" "+name] = true
			default:
				t.Errorf("%s writes the name of the kind %s: use its variable", s.files.Position(of.Pos()), name)
			}
			return true
		})
	})
	for room, words := range otherWords {
		for _, word := range words {
			if !used[room+" "+word] {
				t.Errorf("%s does not write %s: remove it from otherWords", room, word)
			}
		}
	}
}

// federationKind is a federation.Kind as the source has it.
type federationKind struct{ group, name string }

// constants adds the texts that constants of the file have.
func (s source) constants(to map[string]string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		for i := 0; is && i < len(spec.Values); i++ {
			if of, text := spec.Values[i].(*ast.BasicLit); text {
				to[spec.Names[i].Name] = value(of, nil)
			}
		}
		return true
	})
}

// kinds are the values of federation.Kind in the file whose name is written there.
func (s source) kinds() (all []struct{ group, name ast.Expr }) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		of, is := n.(*ast.CompositeLit)
		if !is || of.Type == nil || !s.names(of.Type, "federation", []string{"Kind"}) || len(of.Elts) != 2 {
			return true
		}
		group, name := of.Elts[0], of.Elts[1]
		if by, named := group.(*ast.KeyValueExpr); named {
			group, name = by.Value, name.(*ast.KeyValueExpr).Value
		}
		if _, text := name.(*ast.BasicLit); text {
			all = append(all, struct{ group, name ast.Expr }{group, name})
		}
		return true
	})
	return all
}

// value is the text of a literal, or of the constant.
func value(of ast.Expr, constants map[string]string) string {
	switch of := of.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(of.Value)
		return text
	case *ast.Ident:
		return constants[of.Name]
	case *ast.SelectorExpr:
		return constants[of.Sel.Name]
	}
	return ""
}
