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

// wordsOfCode are further phrases that comments and strings of the source avoid.
var wordsOfCode = []row{
	{`\bstands? for\b`, "means, names, represents, resolves to"},
	{`\b(says|said) of\b`, "reports about, says about"},
	{`\b(is|are) said\b`, "is reported, is sent"},
	{`\b(is|are) told (that|why|what|when|how|where|about)\b`, "gets, sees"},
	{`^\w+ tells (that|whether)\b`, "reports whether"},
	{`\banew\b`, "again, re…"},
}

// wordLists are the files that have the words to avoid.
var wordLists = []string{"docs/words/source_test.go", "docs/words/guide_test.go", "docs/words/names_test.go", "docs/words/table_test.go"}

// TestTheSourceIsInPlainWords: comments, strings and declared names of all Go files, tests
// included, keep to plain words.
func TestTheSourceIsInPlainWords(t *testing.T) {
	phrases := phrasesOf(t, wordsOfBoth, wordsOfCode)
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
			for _, p := range phrases {
				if !p.mayMatch(lower) {
					continue
				}
				for _, at := range p.found(text) {
					t.Errorf("%s: %q in %q; write: %s", name, text[at[0]:at[1]], strings.TrimSpace(text), p.instead)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestK92TextsOfTheProgramAreInPlainWords: what errors, logs and the command line say to users.
func TestK92TextsOfTheProgramAreInPlainWords(t *testing.T) {
	phrases := phrasesOf(t, wordsOfTexts)
	for _, root := range []string{"client", "cmd", "federation", "graph", "internal", "registries", "xds"} {
		err := fs.WalkDir(os.DirFS("../.."), root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			for _, text := range stringsOf(parsed(t, filepath.Join("../..", name))) {
				for _, p := range phrases {
					for _, at := range p.found(text) {
						t.Errorf("%s: %q in %s; write: %s", name, text[at[0]:at[1]], text, p.instead)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A phrase is a pattern, with texts in lower case of which each match has one: they take much
// less time to look for.
type phrase struct {
	*regexp.Regexp
	instead string
	parts   []string
}

func phraseOf(t *testing.T, pattern string) phrase {
	t.Helper()
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	return phrase{Regexp: regexp.MustCompile(pattern), parts: partsOf(parsed.Simplify())}
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
	return append(texts, stringsOf(file)...)
}

func stringsOf(file *ast.File) (texts []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			texts = append(texts, literal.Value)
		}
		return true
	})
	return texts
}
