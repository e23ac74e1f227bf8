package words

import (
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// wordsOfNames are words that declared names avoid, in camel case or alone, and what to
// write instead.
var wordsOfNames = map[string]string{
	"standing": "state, status", "standings": "states, statuses",
	"bearing": "effective configuration", "bearings": "effective configurations",
	"crew": "worker group", "crowded": "rate limited", "horizon": "what it is: visible endpoints, compacted",
	"shelf": "cache", "shelves": "caches", "ledger": "problem set", "sheet": "report, health", "sheets": "reports, health",
	"tally": "counters", "resident": "address owner", "residents": "address owners",
	"hear": "on change, handle", "hears": "on change, handle",
	"vouch": "trusted, remembered as written", "vouched": "trusted, remembered as written",
	"foresee": "preview", "foreseen": "previewed", "foresight": "preview",
	"twin": "duplicate", "twins": "duplicates", "thrift": "what it is: how the collector runs during large applies",
	"tollgate": "proxy", "agenda": "work queue", "rota": "round robin", "roster": "index", "onward": "egress proxy",
	"ruling": "merged", "rulings": "merged",
	"untell": "report as deleted", "unsaid": "unknown",
	"crowd": "network group, what it is", "crowds": "network groups, what it is", "passage": "gateway hop", "passages": "gateway hops",
	"divide": "page", "divides": "pages", "picture": "subscription state", "silence": "overload, what it is: no answer",
	"surroundings": "context", "speech": "protocol", "pictures": "subscription states",
}

// fieldsTerm is a name that may have such a word: a function with the field's own term.
const fieldsTerm = "SplitHorizon"

// checkNames reports the declared names of a file that have an avoided word.
func checkNames(t *testing.T, name string, file *ast.File) {
	t.Helper()
	if ast.IsGenerated(file) {
		return
	}
	names := declared(file)
	names[strings.TrimSuffix(path.Base(name), ".go")] = true
	names[file.Name.Name] = true
	checkWords(t, name, names)
}

// checkWords reports the names that have an avoided word; where is the file that has them.
func checkWords(t *testing.T, where string, names map[string]bool) {
	t.Helper()
	for _, each := range slices.Sorted(maps.Keys(names)) {
		for _, word := range camelWords(each) {
			if instead := wordsOfNames[word]; instead != "" {
				t.Errorf("%s: the name %s has the word %q; write: %s", where, each, word, instead)
			}
		}
	}
}

// clientOperations are what the client is generated from: it gives its types their names.
const clientOperations = "../../client/operations.graphql"

// namedInOperations are names in them that become names of Go.
var namedInOperations = regexp.MustCompile(`\btypename: "(\w+)"|(?m)^(?:query|mutation|subscription|fragment) (\w+)`)

// TestTheClientsTypesHavePlainNames: names of generated files are checked where they are given.
func TestTheClientsTypesHavePlainNames(t *testing.T) {
	text, err := os.ReadFile(clientOperations)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, found := range namedInOperations.FindAllSubmatch(text, -1) {
		names[string(found[1])+string(found[2])] = true
	}
	if !names["ClusterDetail"] || !names["ClusterDetails"] || !names["Ref"] {
		t.Fatalf("%s has the names %v", clientOperations, names)
	}
	checkWords(t, clientOperations, names)
}

// declared are the names of types, functions, fields, parameters, constants and variables
// of a file. The names of tests are sentences, and left out.
func declared(file *ast.File) map[string]bool {
	names := map[string]bool{}
	add := func(idents ...*ast.Ident) {
		for _, i := range idents {
			names[i.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if !strings.HasPrefix(n.Name.Name, "Test") && n.Name.Name != fieldsTerm {
				add(n.Name)
			}
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		}
		return true
	})
	return names
}

// camelWords splits a name where its words begin, and returns them in lower case.
func camelWords(name string) (words []string) {
	runes, start := []rune(name), 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !beginsWord(runes, i) {
			continue
		}
		if word := strings.Trim(string(runes[start:i]), "_"); word != "" {
			words = append(words, strings.ToLower(word))
		}
		start = i
	}
	return words
}

func beginsWord(runes []rune, i int) bool {
	if runes[i] == '_' {
		return true
	}
	return unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
}

func TestNamesAreSplitIntoWords(t *testing.T) {
	for name, want := range map[string]string{
		"Standing": "standing", "gatewayStanding": "gateway standing", "GRPCShelf_test": "grpc shelf test", "understanding": "understanding",
		"newHTTPCrew": "new http crew",
	} {
		if got := strings.Join(camelWords(name), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
