// Package words checks that the guide and the source keep to plain words.
package words

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words are phrases that readers stumble over, and what to write instead.
var words = []struct{ phrase, instead string }{
	{`\b(not )?honoured\b`, "supported"},
	{`\bbelieve[sd]?\b`, "trust, authenticate"},
	{`\b(a|of|this|that|another) sorts? of\b`, "kind, type"},
	{`\bwho(ever)? asks\b`, "the client, the caller"},
	{`\bhow far (it|a change|they) (is|are)\b`, "progress, status"},
	{`\bconcerned prox(y|ies)\b|\bprox(y|ies) concerned\b|\bprox(y|ies) that it concerns\b`, "affected proxies"},
	{`\b(that|which|it) (is|are) no (label|port|name|number|address|namespace|cluster|service)\b`, "is not a …"},
	{`\bcome[s]? again\b`, "reconnect, retry"},
	{`\btake[sn]? up\b`, "reload, use"},
	{`\bbecomes? others?\b|\bare others\b`, "change, be replaced"},
	{`\bbegins? anew\b`, "start again"},
	{`\bspeaks? of\b`, "describe, be about"},
	{`\b(every|any|some)body (may|is|who|can)\b`, "every client, all proxies"},
	{`\b[Ww]hoever\b`, "the caller, a client, every process that …"},
	{`\b(is|are) told of\b`, "gets, sees"},
	{`\bwhat holds\b`, "what is in force, the value that is used"},
	{`\bthere(in|of)\b`, "in it, of it"},
	{`\b(lies?|stands?) (in|beside|under)\b`, "is in, is stored beside"},
	{`\bwhat (became|becomes) of\b`, "the result, the status"},
	{`\b(says|said) of (a|an|the|its)\b`, "reports about, says about"},
	{`\bmakes? of\b`, "computes from, derives from"},
	{`\b(for so long|as ever)\b`, "until …, as before"},
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
	phrases := make([]phrase, len(words))
	for i, w := range words {
		phrases[i] = phraseOf(t, w.phrase)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := proseOf(string(text))
		lower := strings.ToLower(prose)
		for i, w := range words {
			if !phrases[i].mayMatch(lower) {
				continue
			}
			for _, at := range phrases[i].FindAllStringIndex(prose, -1) {
				line := 1 + strings.Count(prose[:at[0]], "\n")
				t.Errorf("%s, line %d: %q; write: %s", page, line, prose[at[0]:at[1]], w.instead)
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
