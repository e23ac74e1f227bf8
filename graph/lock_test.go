package graph_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// lockOf lists what clients of a schema can depend on, a line each: fields and their
// types, arguments, fields of inputs, values of enums, interfaces.
func lockOf(schema *ast.Schema) map[string]string {
	lock := map[string]string{}
	for _, definition := range schema.Types {
		if definition.BuiltIn {
			continue
		}
		lock[definition.Name] = strings.ToLower(string(definition.Kind))
		for _, name := range definition.Interfaces {
			lock[definition.Name+" implements "+name] = "yes"
		}
		for _, value := range definition.EnumValues {
			lock[definition.Name+"."+value.Name] = "value"
		}
		for _, field := range definition.Fields {
			if strings.HasPrefix(field.Name, "__") {
				continue
			}
			lock[definition.Name+"."+field.Name] = withDefault(field.Type, field.DefaultValue)
			for _, argument := range field.Arguments {
				lock[fmt.Sprintf("%s.%s(%s)", definition.Name, field.Name, argument.Name)] = withDefault(argument.Type, argument.DefaultValue)
			}
		}
	}
	return lock
}

func withDefault(of *ast.Type, value *ast.Value) string {
	if value == nil {
		return of.String()
	}
	return of.String() + " = " + value.String()
}

func lockText(lock map[string]string) string {
	var lines []string
	for name, of := range lock {
		lines = append(lines, name+": "+of+"\n")
	}
	slices.Sort(lines)
	return "# What clients of schema.graphql depend on. Written by: go test ./graph -run SchemaLock -update\n" + strings.Join(lines, "")
}

// readLines reads a file of "name: text" lines; # begins a comment.
func readLines(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, text := map[string]string{}, bufio.NewScanner(f)
	for text.Scan() {
		line := strings.TrimSpace(text.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, of, _ := strings.Cut(line, ": ")
		lines[name] = of
	}
	return lines
}

// breaks lists the changes from an old lock that break operations of clients: what is
// gone, what may be null now or takes another type, and what must be given now.
func breaks(before, after map[string]string) []string {
	var found []string
	for name, was := range before {
		is, there := after[name]
		switch {
		case !there:
			found = append(found, name)
		case is != was && !widens(name, was, is, before):
			found = append(found, name)
		}
	}
	for name, is := range after {
		if _, there := before[name]; !there && mustBeGiven(name, is, before) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// isInput reports whether the line is of what clients send.
func isInput(name string, before map[string]string) bool {
	owner, _, _ := strings.Cut(name, ".")
	return strings.Contains(name, "(") || before[owner] == "input_object"
}

// widens reports whether every operation that was valid still is: an answer that is never
// null any more, or an input that may be absent now.
func widens(name, was, is string, before map[string]string) bool {
	if isInput(name, before) {
		return was == is+"!"
	}
	return is == was+"!"
}

// mustBeGiven reports whether the line is of a new input that clients must send.
func mustBeGiven(name, is string, before map[string]string) bool {
	owner, _, isArgument := strings.Cut(name, "(")
	if !isArgument {
		owner, _, _ = strings.Cut(name, ".")
	}
	return before[owner] != "" && isInput(name, before) && strings.HasSuffix(is, "!")
}

// TestSchemaLock fails on a change of the schema that breaks clients, unless
// schema.breaking declares it, and on a schema.lock that does not say what the schema
// is. Without -update no change goes unseen.
func TestSchemaLock(t *testing.T) {
	file := filepath.Join("..", "schema.lock")
	now := lockOf(publicSchema(t))
	before, declared := readLines(t, file), readLines(t, filepath.Join("..", "schema.breaking"))
	for _, name := range breaks(before, now) {
		if declared[name] == "" {
			t.Errorf("%s: the change from %q to %q breaks clients: deprecate it first, or declare it in schema.breaking with the reason",
				name, before[name], now[name])
		}
	}
	if t.Failed() {
		return
	}
	if updating() {
		if err := os.WriteFile(file, []byte(lockText(now)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != lockText(now) {
		t.Errorf("schema.graphql has changed since schema.lock was written (%v); run go test ./graph -run SchemaLock -update, and list the change in CHANGELOG.md", err)
	}
}

// TestSchemaLockTellsWhatBreaksClients by the kinds of changes.
func TestSchemaLockTellsWhatBreaksClients(t *testing.T) {
	const old = "type Query { a(x: Int!, y: Int): String! b: Int c(z: Z): [E!] } input Z { p: Int q: Int! } enum E { ONE TWO }"
	lock := func(text string) map[string]string {
		return lockOf(gqlparser.MustLoadSchema(&ast.Source{Name: "a", Input: text}))
	}
	for name, row := range map[string]struct{ old, new, want string }{
		"nothing":                   {"", "", "[]"},
		"field removed":             {"b: Int", "", "[Query.b]"},
		"field may be null":         {"String!", "String", "[Query.a]"},
		"field is never null":       {"b: Int", "b: Int!", "[]"},
		"field of another type":     {"b: Int", "b: String", "[Query.b]"},
		"field added":               {"b: Int", "b: Int d(x: Int!): Int", "[]"},
		"argument removed":          {", y: Int", "", "[Query.a(y)]"},
		"argument added":            {"y: Int", "y: Int, w: Int", "[]"},
		"argument must be given":    {"y: Int", "y: Int!", "[Query.a(y)]"},
		"new one must be given":     {"y: Int", "y: Int, w: Int!", "[Query.a(w)]"},
		"argument may be absent":    {"x: Int!", "x: Int", "[]"},
		"default changed":           {"y: Int", "y: Int = 3", "[Query.a(y)]"},
		"input field removed":       {"p: Int", "", "[Z.p]"},
		"input field must be given": {"p: Int", "p: Int r: Int!", "[Z.r]"},
		"value removed":             {"ONE TWO", "ONE", "[E.TWO]"},
		"value added":               {"ONE TWO", "ONE TWO THREE", "[]"},
	} {
		if got := fmt.Sprint(breaks(lock(old), lock(strings.Replace(old, row.old, row.new, 1)))); got != row.want {
			t.Errorf("%s: breaking are %s, want %s", name, got, row.want)
		}
	}
}
