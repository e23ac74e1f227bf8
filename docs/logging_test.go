package docs

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestR46TheKeysOfTheLogAreDocumented compares the keys of all log calls with the
// table of the guide.
func TestR46TheKeysOfTheLogAreDocumented(t *testing.T) {
	used := map[string]bool{}
	for _, root := range []string{"cmd", "federation", "graph", "internal", "registries", "xds"} {
		err := filepath.WalkDir("../"+root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || d.Name() == "testdata" {
				return err
			}
			sources, err := filepath.Glob(filepath.Join(path, "*.go"))
			if err != nil || !slices.ContainsFunc(sources, func(file string) bool { return !strings.HasSuffix(file, "_test.go") }) {
				return err
			}
			walk(t, path, func(n ast.Node) {
				if call, ok := n.(*ast.CallExpr); ok {
					for _, key := range logKeys(call) {
						used[key] = true
					}
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(used, "") // made of what a library says
	sameSet(t, "keys of the log", firstColumn(rows(t, read(t, "metrics.md"), "key")), keysOf(used))
}

// logKeys are the keys in a call of slog's attributes or of a logger.
func logKeys(call *ast.CallExpr) []string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	name := method.Sel.Name
	if of, ok := method.X.(*ast.Ident); ok && of.Name == "slog" {
		if slices.Contains([]string{"String", "Int", "Int64", "Uint64", "Float64", "Bool", "Any", "Time", "Duration", "Group"}, name) {
			return []string{text(call.Args[0])}
		}
		return nil
	}
	args := call.Args
	switch name {
	case "Debug", "Info", "Warn", "Error":
		args = args[1:]
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		args = args[2:]
	case "With":
	default:
		return nil
	}
	if of := receiver(method.X); of != "log" && of != "logger" {
		return nil
	}
	var keys []string
	for i := 0; i < len(args); i++ {
		if key := text(args[i]); key != "" && !strings.Contains(key, " ") {
			keys = append(keys, key)
			i++ // its value
		}
	}
	return keys
}

// receiver is the last name of what a method is called of, in lower case.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.ToLower(e.Name)
	case *ast.SelectorExpr:
		return strings.ToLower(e.Sel.Name)
	}
	return ""
}
