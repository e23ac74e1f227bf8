package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// wordsOfCode are phrases that comments and strings of the source avoid, and what to
// write instead.
var wordsOfCode = []struct{ phrase, instead string }{
	{`\bwhoever\b`, "the caller, a client, every process that …"},
	{`\b(is|are|not|all) honou?red\b`, "supported"},
	{`\bbelieve[sd]?\b`, "trust, authenticate"},
	{`\b(a|the|every|any|which|one) sorts? of\b`, "kind, type"},
	{`\bwho asks\b`, "the client, the caller"},
	{`\bhow far (it|they)\b`, "progress, status"},
	{`\b(is|are) no (port|name|address|object)\b`, "is not a …"},
	{`\bbecomes? (another|others)\b|\bare others\b|\banother one each time\b`, "change, be replaced"},
	{`\b(lies?|stands?) (in|beside|under)\b`, "is in, is stored beside"},
	{`\bstands? for\b`, "means, names, represents, resolves to"},
	{`\bmakes? of\b`, "computes from, derives from"},
	{`\bwhat (became|becomes) of\b`, "the result, the status"},
	{`\b(says|said) of\b`, "reports about, says about"},
	{`\b(is|are) said\b`, "is reported, is sent"},
	{`\b(is|are) told (that|why|what|when|how|where|about)\b`, "gets, sees"},
	{`^\w+ tells (that|whether)\b`, "reports whether"},
	{`\banew\b`, "again, re…"},
	{`\b(for so long|as ever)\b`, "until …, as before"},
	{`\b(is|are) told of\b`, "gets, sees, is called for"},
	{`\bwhat holds\b`, "what is in force, the value that is used"},
	{`\bthere(in|of)\b`, "in it, of it"},
}

// wordLists are the files that have the words to avoid.
var wordLists = []string{"docs/words_go_test.go", "docs/words_test.go", "docs/words_names_test.go"}

// TestTheSourceIsInPlainWords: comments, strings and declared names of all Go files, tests
// included, keep to plain words.
func TestTheSourceIsInPlainWords(t *testing.T) {
	phrases, parts := make([]*regexp.Regexp, len(wordsOfCode)), make([]string, len(wordsOfCode))
	for i, w := range wordsOfCode {
		phrases[i], parts[i] = regexp.MustCompile(`(?i)`+w.phrase), partOf(t, w.phrase)
	}
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."), d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || slices.Contains(wordLists, name):
			return nil
		}
		file := parsed(t, filepath.Join("..", name))
		checkNames(t, name, file)
		for _, text := range textsOf(file) {
			lower := strings.ToLower(text)
			for i, w := range wordsOfCode {
				if !strings.Contains(lower, parts[i]) {
					continue
				}
				if found := phrases[i].FindString(text); found != "" {
					t.Errorf("%s: %q in %q; write: %s", name, found, strings.TrimSpace(text), w.instead)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// partOf is the longest text that is in all that the phrase matches: it takes much less
// time to look for.
func partOf(t *testing.T, phrase string) string {
	t.Helper()
	parsed, err := syntax.Parse(phrase, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	longest := ""
	if parsed = parsed.Simplify(); parsed.Op == syntax.OpConcat {
		for _, sub := range parsed.Sub {
			if sub.Op == syntax.OpLiteral && len(sub.Rune) > len(longest) {
				longest = strings.ToLower(string(sub.Rune))
			}
		}
	}
	return longest
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// textsOf are the comments and strings of a file; none of a generated one.
func textsOf(file *ast.File) []string {
	if ast.IsGenerated(file) {
		return nil
	}
	var texts []string
	for _, c := range file.Comments {
		texts = append(texts, strings.Join(strings.Fields(c.Text()), " "))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			texts = append(texts, literal.Value)
		}
		return true
	})
	return texts
}
