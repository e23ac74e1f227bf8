package docs

import (
	"encoding/json"
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	gqlast "github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"isthmus.dev/isthmus/graph/transport"
)

var (
	typedQuery  = regexp.MustCompile(`isthmus query '([^']+)'`)
	triedQuery  = regexp.MustCompile(`(?m)^Try: +(\{ \w.*\})$`) // what a program prints
	curlBody    = regexp.MustCompile(`-d '(\{.*\})'`)
	inlineQuery = regexp.MustCompile(`^\{ \w.*\} \}$`)
)

// queries are all GraphQL queries of a page: blocks, bodies of curl, what is
// typed, and whole queries in a line.
func queries(t *testing.T, page string) []string {
	t.Helper()
	all, prose := blocks(page)
	var found []string
	for _, b := range all {
		if b.lang == "graphql" {
			found = append(found, b.text)
		}
		for _, m := range curlBody.FindAllStringSubmatch(b.text, -1) {
			var body struct{ Query string }
			if err := json.Unmarshal([]byte(m[1]), &body); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
			found = append(found, body.Query)
		}
		for _, m := range typedQuery.FindAllStringSubmatch(b.text, -1) {
			found = append(found, m[1])
		}
	}
	for _, m := range triedQuery.FindAllStringSubmatch(page, -1) {
		found = append(found, m[1])
	}
	for _, span := range spans(prose) {
		if inlineQuery.MatchString(span) {
			found = append(found, span)
		}
	}
	return found
}

func TestQueriesFitTheSchema(t *testing.T) {
	schema, err := gqlparser.LoadSchema(&gqlast.Source{Name: "schema.graphql", Input: read(t, "../schema.graphql")})
	if err != nil {
		t.Fatal(err)
	}
	help, _ := isthmus(t, "query", "--help")
	pages, seen := map[string]string{"isthmus query --help": "```sh\n" + help + "```\n"}, 0
	for _, name := range guide(t) {
		pages[name] = read(t, name)
	}
	for name, page := range pages {
		for _, query := range queries(t, page) {
			seen++
			document, errs := gqlparser.LoadQueryWithRules(schema, query, rules.NewDefaultRules())
			if len(errs) > 0 {
				t.Errorf("%s: %v in %s", name, errs, query)
				continue
			}
			for _, operation := range document.Operations {
				for _, field := range deprecated(operation.SelectionSet) {
					t.Errorf("%s: %s is deprecated, in %s", name, field, query)
				}
			}
		}
	}
	if seen < 12 {
		t.Errorf("only %d queries were seen", seen)
	}
}

// deprecated are the selected fields, and those below them, that new clients should not use.
func deprecated(of gqlast.SelectionSet) (names []string) {
	for _, selected := range of {
		switch s := selected.(type) {
		case *gqlast.Field:
			if s.Definition != nil && s.Definition.Directives.ForName("deprecated") != nil {
				names = append(names, s.Name)
			}
			names = append(names, deprecated(s.SelectionSet)...)
		case *gqlast.InlineFragment:
			names = append(names, deprecated(s.SelectionSet)...)
		case *gqlast.FragmentSpread:
			names = append(names, deprecated(s.Definition.SelectionSet)...)
		}
	}
	return names
}

// TestAnswersAreReal asks a hub with the sample every query that an answer
// follows, README's first one too.
func TestAnswersAreReal(t *testing.T) {
	type pair struct{ query, answer string }
	var pairs []pair
	for _, name := range guide(t) {
		all, _ := blocks(read(t, name))
		for i, b := range all {
			if b.lang == "json" && !json.Valid([]byte(b.text)) {
				t.Errorf("%s: no JSON: %s", name, b.text)
			}
			if b.lang == "json" && b.before == "" && i > 0 && all[i-1].lang == "graphql" {
				pairs = append(pairs, pair{all[i-1].text, b.text})
			}
		}
	}
	if len(pairs) < 5 {
		t.Fatalf("only %d queries have an answer", len(pairs))
	}
	readme := read(t, "../README.md")
	pairs = append(pairs, pair{queries(t, readme)[0], blocksOf(readme, "json")[0]})
	h := startHub(t)
	for _, p := range pairs {
		got, err := h.post(p.query)
		if err != nil {
			t.Fatal(err)
		}
		var real, documented any
		if err := json.Unmarshal(got, &real); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(p.answer), &documented); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(real, documented) {
			t.Errorf("%s is answered\n%s", p.query, got)
		}
	}
}

func TestEveryErrorCodeIsDocumented(t *testing.T) {
	real := constants(t, "../graph/transport", func(name, typ string) bool { return typ == "Code" && ast.IsExported(name) })
	real = append(real, string(transport.ParseFailed), string(transport.ValidationFailed))
	page := read(t, "graphql.md")
	sameSet(t, "codes of errors", firstColumn(rows(t, page, "code")), real)
	// Fields that are documented for later versions must not be in use.
	for _, row := range rows(t, page, "code") {
		name := goName(spans(row[0])[0])
		used := false
		for _, dir := range []string{"../graph", "../graph/transport", "../graph/model"} {
			walk(t, dir, func(n ast.Node) {
				switch n := n.(type) {
				case *ast.CallExpr:
					used = used || slices.ContainsFunc(n.Args, func(e ast.Expr) bool { return isNamed(e, name) })
				case *ast.ReturnStmt:
					used = used || slices.ContainsFunc(n.Results, func(e ast.Expr) bool { return isNamed(e, name) })
				}
			})
		}
		if later := strings.Contains(row[2], "for later versions"); later && used {
			t.Errorf("%s is in use, the guide says it is for later versions", row[0])
		}
	}
}

// goName is the constant of a code: BAD_USER_INPUT is BadUserInput.
func goName(code string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(code, "GRAPHQL_"), "_") {
		name.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return name.String()
}

func isNamed(e ast.Expr, name string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == name
	case *ast.SelectorExpr:
		return e.Sel.Name == name
	}
	return false
}

// TestEveryCloseCodeIsDocumented compares the codes of WebSockets with the table.
func TestEveryCloseCodeIsDocumented(t *testing.T) {
	standard := map[string]string{
		"StatusGoingAway": "1001", "StatusProtocolError": "1002", "StatusPolicyViolation": "1008", "StatusMessageTooBig": "1009",
		"StatusTryAgainLater": "1013",
	}
	var real []string
	calls(t, "../graph/transport", "closed", func(args []ast.Expr) {
		code := ""
		switch arg := args[0].(type) {
		case *ast.BasicLit:
			code = arg.Value
		case *ast.SelectorExpr:
			code = standard[arg.Sel.Name]
		}
		if !slices.Contains(real, code) {
			real = append(real, code)
		}
	})
	var documented []string
	for _, row := range rows(t, read(t, "graphql.md"), "close code") {
		documented = append(documented, row[0])
	}
	sameSet(t, "close codes", documented, real)
}
