package words

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the index of the decisions")

const decisionsIndex = "../adr/README.md"

const indexHead = `# Decisions

Each page records a decision that others would question, and why we made it. A page stays when
a later one changes or supersedes it; the last column names the later one.
` + "`go test ./docs/words -run M19 -update`" + ` writes this index.

| decision | in short | status |
|---|---|---|
`

var (
	titleOf    = regexp.MustCompile(`^# (\d+)\. (.+)$`)
	decides    = regexp.MustCompile(`(?s)(?:\*\*Decision\.?\*\*|(?m:^)Decision:|## Decision)(.+)`)
	laterOnes  = regexp.MustCompile(`(?m)^(Changed|Superseded) by (.+)\.$`)
	linkOf     = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	paragraphs = regexp.MustCompile(`\n(\n|- |\* |\d+\. |\|)`)
)

// TestM19TheDecisionsHaveAnIndex: docs/adr/README.md lists every decision with its title, its
// first sentence, and the decisions that changed or superseded it.
func TestM19TheDecisionsHaveAnIndex(t *testing.T) {
	pages, err := filepath.Glob("../adr/[0-9]*.md")
	if err != nil || len(pages) < 100 {
		t.Fatal(pages, err)
	}
	index := strings.Builder{}
	index.WriteString(indexHead)
	for _, page := range pages {
		index.WriteString(indexRow(t, page))
	}
	if *update {
		if err := os.WriteFile(decisionsIndex, []byte(index.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := os.ReadFile(decisionsIndex)
	if err != nil {
		t.Fatal(err)
	}
	if string(found) != index.String() {
		t.Error("docs/adr/README.md is not current; run go test ./docs/words -run M19 -update")
	}
}

func indexRow(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, text, _ := strings.Cut(string(data), "\n")
	title := titleOf.FindStringSubmatch(head)
	if title == nil || !strings.HasPrefix(filepath.Base(page), fmt.Sprintf("%04s-", title[1])) {
		t.Errorf("%s: the first line is %q; write \"# NUMBER. TITLE\" with the number of the file", page, head)
		return ""
	}
	status := "in force"
	if later := laterOnes.FindStringSubmatch(text); later != nil {
		for _, l := range linkOf.FindAllStringSubmatch(later[2], -1) {
			if _, err := os.Stat(filepath.Join("../adr", l[2])); err != nil || l[2] <= filepath.Base(page) {
				t.Errorf("%s: %s %s: not a later decision", page, later[1], l[2])
			}
		}
		status = strings.ToLower(later[1]) + " by " + later[2]
		text = strings.Replace(text, later[0], "", 1)
	}
	return fmt.Sprintf("| [%s. %s](%s) | %s | %s |\n", title[1], title[2], filepath.Base(page), inShort(text), status)
}

// inShort is the first sentence of the decision.
func inShort(text string) string {
	if m := decides.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	text = strings.TrimLeft(text, "- *\n")
	if at := paragraphs.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	first := split(strings.Join(strings.Fields(text), " "))[0]
	first = strings.ReplaceAll(linkOf.ReplaceAllString(first, "$1"), "|", `\|`)
	return strings.TrimRight(strings.TrimSpace(first), ".:")
}

var sentenceEnd = regexp.MustCompile(`[.!?]["')*_]*\s+`)

// split divides a paragraph into its sentences.
func split(text string) (all []string) {
	start := 0
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		all = append(all, text[start:at[1]])
		start = at[1]
	}
	return append(all, text[start:])
}
