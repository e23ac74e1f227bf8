package words

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
	{`\bhow far (?:(?:a|an|the|each|one) \w+|it|they|proxies|changes|objects) (?:is|are|has|have)\b`, "progress, status"},
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
var wordLists = []string{"docs/words/source_test.go", "docs/words/guide_test.go", "docs/words/names_test.go"}

// TestTheSourceIsInPlainWords: comments, strings and declared names of all Go files, tests
// included, keep to plain words.
func TestTheSourceIsInPlainWords(t *testing.T) {
	phrases := make([]phrase, len(wordsOfCode))
	for i, w := range wordsOfCode {
		phrases[i] = phraseOf(t, `(?i)`+w.phrase)
	}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."), d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || slices.Contains(wordLists, name):
			return nil
		}
		file := parsed(t, filepath.Join("../..", name))
		checkNames(t, name, file)
		for _, text := range textsOf(file) {
			lower := strings.ToLower(text)
			for i, w := range wordsOfCode {
				if !phrases[i].mayMatch(lower) {
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

// A phrase is a pattern, with texts in lower case of which each match has one: they take much
// less time to look for.
type phrase struct {
	*regexp.Regexp
	parts []string
}

func phraseOf(t *testing.T, pattern string) phrase {
	t.Helper()
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	return phrase{regexp.MustCompile(pattern), partsOf(parsed.Simplify())}
}

func (p phrase) mayMatch(lower string) bool {
	return slices.ContainsFunc(p.parts, func(part string) bool { return strings.Contains(lower, part) })
}

// partsOf are texts of which each match of the pattern has one.
func partsOf(pattern *syntax.Regexp) []string {
	switch pattern.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(pattern.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return partsOf(pattern.Sub[0])
	case syntax.OpConcat:
		best := []string{""}
		for _, sub := range pattern.Sub {
			if parts := partsOf(sub); shortest(parts) > shortest(best) {
				best = parts
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range pattern.Sub {
			all = append(all, partsOf(sub)...)
		}
		return all
	}
	return []string{""}
}

func shortest(parts []string) int {
	return len(slices.MinFunc(parts, func(a, b string) int { return len(a) - len(b) }))
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
