// Package words checks that the guide and the source keep to plain words.
package words

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wordsOfGuide are further phrases that the guide avoids.
var wordsOfGuide = []row{
	{`\bcomes? again\b`, "reconnect, retry"},
	{`\bbegins? anew\b`, "start again"},
	{`\b(every|any|some)body (may|is|who|can)\b`, "every client, all proxies"},
}

// otherTexts have further texts for users: the schema, the descriptions of the hub's own kinds, and pages for browsers.
var otherTexts = []string{
	"../../schema.graphql", "../../federation/config/schema/crds/isthmus.dev_*.yaml",
	"../../internal/hub/web/page.html", "../../graph/graphiql/page.html",
}

// guide returns the pages of the guide, the decisions, the pages of the root folder, and the READMEs of rooms.
func guide(t *testing.T) []string {
	t.Helper()
	pages := globbed(t, "../*.md", "../kinds/*.md", "../adr/*.md", "../../*.md")
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch page := filepath.Join("../..", name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."), name == "docs", d.Name() == "node_modules":
			return fs.SkipDir
		case d.Name() == "README.md" && !slices.Contains(pages, page):
			pages = append(pages, page)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func globbed(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, found, err)
		}
		files = append(files, found...)
	}
	return files
}

// TestTheGuideIsInPlainWords: the guide, the decisions, the pages of the root folder and of rooms,
// the schema, and other texts for users keep to the field's words.
func TestTheGuideIsInPlainWords(t *testing.T) {
	phrases, ofUsers := phrasesOf(t, wordsOfBoth, wordsOfGuide), phrasesOf(t, wordsOfTexts)
	for _, page := range append(guide(t), globbed(t, otherTexts...)...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := proseOf(string(text))
		lower := strings.ToLower(prose)
		looked := phrases
		if !strings.HasPrefix(page, "../adr/") {
			looked = slices.Concat(phrases, ofUsers)
		}
		for _, p := range looked {
			if !p.mayMatch(lower) {
				continue
			}
			for _, at := range p.found(prose) {
				line := 1 + strings.Count(prose[:at[0]], "\n")
				t.Errorf("%s, line %d: %q; write: %s", page, line, prose[at[0]:at[1]], p.instead)
			}
		}
	}
}

var codeSpan = regexp.MustCompile("`[^`\n]+`")

// proseOf is the page without code; its lines stay where they are.
func proseOf(page string) string {
	var prose strings.Builder
	code := false
	for line := range strings.Lines(page) {
		switch fence := strings.HasPrefix(strings.TrimSpace(line), "```"); {
		case fence:
			code = !code
			prose.WriteString("\n")
		case code:
			prose.WriteString("\n")
		default:
			prose.WriteString(codeSpan.ReplaceAllString(line, "CODE"))
		}
	}
	return prose.String()
}
