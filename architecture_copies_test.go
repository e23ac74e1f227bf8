package isthmus_test

import (
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostCopied is the number of lines of code up to which a passage may stand twice.
const mostCopied = 12

// TestNoPassageStandsTwice in any two places of the tree, generated files apart. The linter
// dupl finds passages of the same shape, but only within a package.
func TestNoPassageStandsTwice(t *testing.T) {
	files := map[string][]codeLine{}
	for _, kind := range written {
		for _, name := range filesOf(t, kind.suffixes...) {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !generated.Match(source) {
				files[name] = kind.lines(source)
			}
		}
	}
	for _, c := range copies(files, mostCopied+1) {
		t.Errorf("%s: have it in one place", c)
	}
}

// written are the kinds of files that somebody writes. YAML and GraphQL are not among them: they have no
// means to share what two objects, or two payloads, have in common.
var written = []struct {
	lines    func(source []byte) []codeLine
	suffixes []string
}{
	{codeLines, []string{".go"}},
	{textLines, []string{".md", ".sh", ".mk", "Makefile", ".js", ".jsx", ".mjs", ".html"}},
}

// generated is the line that files have which no one writes by hand.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// textLines are the lines of any other text that say something. Rows of tables are not among them.
func textLines(source []byte) (lines []codeLine) {
	number := 0
	for text := range strings.Lines(string(source)) {
		number++
		text = strings.TrimSpace(text)
		if text != "" && text[0] != '|' && text[0] != '#' {
			lines = append(lines, codeLine{number, text})
		}
	}
	return lines
}

// filesOf are the files of the tree whose names end so, tests included.
func filesOf(t *testing.T, suffixes ...string) []string {
	t.Helper()
	names, err := find(suffixes...)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func find(suffixes ...string) (names []string, err error) {
	err = fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir() && slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) }):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// codeLine is a line as it is compared: without comments and indentation.
type codeLine struct {
	number int
	text   string
}

// codeLines are the lines of a file that say something: no comments, imports or blank lines.
func codeLines(source []byte) []codeLine {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	var lines []codeLine
	add := func(number int, text string) {
		if last := len(lines) - 1; last >= 0 && lines[last].number == number {
			lines[last].text += " " + text
		} else if text != "" {
			lines = append(lines, codeLine{number, text})
		}
	}
	for {
		pos, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return lines
		case tok == token.IMPORT:
			skipImport(&s)
		case tok == token.SEMICOLON && text == "\n": // the end of a line
		default:
			for i, part := range strings.Split(cmp.Or(text, tok.String()), "\n") { // a text has several lines
				add(file.Line(pos)+i, strings.TrimSpace(part))
			}
		}
	}
}

// skipImport reads on to the end of an import declaration.
func skipImport(s *scanner.Scanner) {
	for depth := 0; ; {
		switch _, tok, _ := s.Scan(); tok {
		case token.LPAREN:
			depth++
		case token.RPAREN:
			depth--
		case token.SEMICOLON:
			if depth == 0 {
				return
			}
		case token.EOF:
			return
		}
	}
}

// place is a line of code of a file.
type place struct {
	file string
	at   int
}

// copies describes each passage of that many lines or more that stands twice. It costs what
// the lines do: each passage is looked up by its hash.
func copies(files map[string][]codeLine, least int) (found []string) {
	seed, first := maphash.MakeSeed(), map[uint64]place{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lines := files[name]
		for at := 0; at+least <= len(lines); at++ {
			key := hashed(seed, lines[at:at+least])
			before, seen := first[key]
			if !seen {
				first[key] = place{name, at}
				continue
			}
			original := files[before.file][before.at:]
			n := common(original, lines[at:])
			found = append(found, fmt.Sprintf("%s:%d and %s:%d have %d lines of code in common", before.file,
				original[0].number, name, lines[at].number, n))
			at += n - least // what follows is part of it
		}
	}
	return found
}

func hashed(seed maphash.Seed, lines []codeLine) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, line := range lines {
		_, _ = h.WriteString(line.text)
		_ = h.WriteByte('\n')
	}
	return h.Sum64()
}

func common(a, b []codeLine) int {
	n := 0
	for n < min(len(a), len(b)) && a[n].text == b[n].text {
		n++
	}
	return n
}

// TestCopiesAreFound whatever comments, imports and indentation are.
func TestCopiesAreFound(t *testing.T) {
	body := "\tx := `a\n\nb`\n" + strings.Repeat("\tprintln(x)\n", 3)
	first := "package a\n\nimport \"fmt\"\n\n// F prints.\nfunc F() {\n" + body + "}\n"
	second := "package b\n\nimport (\n\t\"os\"\n)\n\nfunc G() {\n\tif true {\n" + strings.ReplaceAll(body, "\n\tprintln",
		" // it\n\n\t\tprintln") + "\t}\n}\n"
	files := map[string][]codeLine{"a.go": codeLines([]byte(first)), "b.go": codeLines([]byte(second))}
	want := []string{"a.go:7 and b.go:9 have 6 lines of code in common"}
	if found := copies(files, 6); !slices.Equal(found, want) {
		t.Errorf("found %q, not %q", found, want)
	}
	if found := copies(files, 7); found != nil {
		t.Errorf("found %q", found)
	}
}
