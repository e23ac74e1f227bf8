// Package words checks that the guide and the source keep to plain words.
package words

import (
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
	{`\bspeaks? of\b`, "describe, be about"},
	{`\b(every|any|some)body (may|is|who|can)\b`, "every client, all proxies"},
}

// TestTheGuideIsInPlainWords: the guide, the decisions, the pages of the root folder
// and the schema keep to the field's words.
func TestTheGuideIsInPlainWords(t *testing.T) {
	var pages []string
	for _, folder := range []string{"../*.md", "../kinds/*.md", "../adr/*.md", "../../*.md", "../../schema.graphql"} {
		found, err := filepath.Glob(folder)
		if err != nil || len(found) == 0 {
			t.Fatal(folder, found, err)
		}
		pages = append(pages, found...)
	}
	phrases, ofUsers := phrasesOf(t, wordsOfBoth, wordsOfGuide), phrasesOf(t, wordsOfTexts)
	for _, page := range pages {
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
