package docs

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestEveryPhaseIsDocumented(t *testing.T) {
	sameSet(t, "phases", firstColumn(rows(t, read(t, "clusters-reference.md"), "phase")), constants(t, "../federation", ofType("Phase")))
}

func TestEveryConflictIsDocumented(t *testing.T) {
	conflicts := section(t, read(t, "clusters-reference.md"), "## Conflicts")
	sameSet(t, "conflicts", firstColumn(rows(t, conflicts, "code")), constants(t, "../federation", ofType("ConflictKind")))
}

func TestEveryKubeconfigRefusalIsDocumented(t *testing.T) {
	refused := section(t, read(t, "clusters-reference.md"), "## Kubeconfigs: what is refused")
	real := constants(t, "../internal/kube", func(name, typ string) bool { return typ == "Code" && ast.IsExported(name) })
	sameSet(t, "codes of kubeconfigs", firstColumn(rows(t, refused, "code")), real)
}

// TestEveryProblemIsDocumented wants one table for any cluster, one for
// Kubernetes and one for Consul.
func TestEveryProblemIsDocumented(t *testing.T) {
	of := tables(section(t, read(t, "clusters-reference.md"), "## Problems"), "code")
	if len(of) != 3 {
		t.Fatalf("there are %d tables", len(of))
	}
	attached := constants(t, "../registries/reconcile", func(name, _ string) bool { return strings.HasPrefix(strings.ToLower(name), "code") })
	sameSet(t, "problems of any cluster", firstColumn(of[0]), slices.Concat(
		problemLiterals(t, "../federation"), problemLiterals(t, "../registries"), problemLiterals(t, "../registries/reconcile"), attached,
	))
	codes := func(name, _ string) bool { return strings.HasPrefix(name, "code") }
	sameSet(t, "problems of Kubernetes", firstColumn(of[1]), slices.Concat(problemLiterals(t, "../registries/kubernetes"),
		constants(t, "../registries/kubernetes", codes)))
	found := map[string]bool{}
	for _, code := range slices.Concat(problemLiterals(t, "../registries/consul"), constants(t, "../registries/consul", codes)) {
		found[code] = true
	}
	calls(t, "../registries/consul", "ofService", func(args []ast.Expr) { found[text(args[0])] = true })
	calls(t, "../registries/consul", "ofInstance", func(args []ast.Expr) { found[text(args[1])] = true })
	sameSet(t, "problems of Consul", firstColumn(of[2]), keysOf(found))
}

// problemLiterals are the codes that are written where a Problem is made.
func problemLiterals(t *testing.T, dir string) []string {
	t.Helper()
	found := map[string]bool{}
	walk(t, dir, func(n ast.Node) {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Code" && text(pair.Value) != "" {
			found[text(pair.Value)] = true
		}
	})
	return slices.Sorted(maps.Keys(found))
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)

// TestMessagesAreThoseOfTheCode looks for every message of the tables, piece by
// piece, among the texts of the code.
func TestMessagesAreThoseOfTheCode(t *testing.T) {
	said := texts(t, "../registries", "../registries/provider", "../registries/reconcile", "../registries/kubernetes", "../registries/consul",
		"../internal/kube", "../internal/kube/listwatch", "../internal/hub/kinds", "../internal/hub/clusters", "../internal/hub/settings")
	areSaid(t, said, rows(t, section(t, read(t, "clusters-reference.md"), "## Status messages"), "message contains"))
	areSaid(t, texts(t, "../internal/access", "../registries/consul"), rows(t, read(t, "consul.md"), "the stream ends with"))
}

// texts are those of the code in the folders, with … for what is filled in.
func texts(t *testing.T, dirs ...string) []string {
	t.Helper()
	var said []string
	for _, dir := range dirs {
		walk(t, dir, func(n ast.Node) {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if value, err := strconv.Unquote(literal.Value); err == nil {
					said = append(said, verb.ReplaceAllString(value, "…"))
				}
			}
		})
	}
	return said
}

// areSaid wants each message of a table's first column among the texts.
func areSaid(t *testing.T, said []string, messages [][]string) {
	t.Helper()
	for _, row := range messages {
		for _, message := range spans(row[0]) {
			for piece := range strings.SplitSeq(message, "…") {
				piece = strings.TrimSpace(piece)
				if len(piece) > 3 && !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, piece) }) {
					t.Errorf("nothing says %q of %q", piece, message)
				}
			}
		}
	}
}
