// Package docs holds the user guide. Its tests compare what the guide says with
// the code, and run what it tells to run.
package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// guide lists the pages of the user guide and the ones that lead to it.
func guide(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) < 6 {
		t.Fatalf("found %v, %v", pages, err)
	}
	return append(pages, "../README.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// block is a fenced block: its language and its lines, and whether nothing but
// empty lines stands between it and the one before.
type block struct {
	before     string // the lines of text between the block before and this one; empty: it follows that block
	lang, text string
}

// blocks divides a page into its fenced blocks and the text without them.
func blocks(page string) (found []block, prose string) {
	var rest, before strings.Builder
	open, indent := false, ""
	for line := range strings.Lines(page) {
		lang, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !open:
			indent = line[:len(line)-len(strings.TrimLeft(line, " "))] // blocks of items are indented
			found, open = append(found, block{lang: lang, before: before.String()}), true
			before.Reset()
		case fence:
			open = false
		case open:
			found[len(found)-1].text += strings.TrimPrefix(line, indent)
		default:
			rest.WriteString(line)
			if strings.TrimSpace(line) != "" {
				before.WriteString(line)
			}
		}
	}
	return found, rest.String()
}

// blocksOf are the blocks of a language.
func blocksOf(page, lang string) []string {
	var texts []string
	all, _ := blocks(page)
	for _, b := range all {
		if b.lang == lang {
			texts = append(texts, b.text)
		}
	}
	return texts
}

// section is the part of a page under a heading, subsections included.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, after, found := strings.Cut("\n"+page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no section %q", heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	end := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+len(level))) + `} `)
	if at := end.FindStringIndex(after); at != nil {
		after = after[:at[0]]
	}
	return after
}

// tables are the tables of a text whose first column is called that: row by row,
// heads apart.
func tables(text, first string) [][][]string {
	var all [][][]string
	inside, wanted := false, false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := cellsOf(line)
		switch {
		case !inside:
			inside, wanted = true, cells[0] == first
			if wanted {
				all = append(all, nil)
			}
		case wanted && !strings.HasPrefix(cells[0], "---"):
			all[len(all)-1] = append(all[len(all)-1], cells)
		}
	}
	return all
}

func cellsOf(line string) []string {
	line = strings.ReplaceAll(strings.Trim(strings.TrimSpace(line), "|"), `\|`, "\x00")
	var cells []string
	for cell := range strings.SplitSeq(line, "|") {
		cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|"))
	}
	return cells
}

// rows joins the tables of a text whose first column is called that.
func rows(t *testing.T, text, first string) [][]string {
	t.Helper()
	all := slices.Concat(tables(text, first)...)
	if len(all) == 0 {
		t.Fatalf("there is no table of %q", first)
	}
	return all
}

var codeSpan = regexp.MustCompile("`([^`\n]+)`")

func spans(text string) []string {
	var all []string
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// firstColumn are the code spans of the first cells, sorted.
func firstColumn(rows [][]string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, spans(row[0])...)
	}
	slices.Sort(all)
	return all
}

// sameSet reports what one of two sets lacks.
func sameSet(t *testing.T, what string, documented, real []string) {
	t.Helper()
	for _, d := range documented {
		if !slices.Contains(real, d) {
			t.Errorf("%s: %s is documented and does not exist", what, d)
		}
	}
	for _, r := range real {
		if !slices.Contains(documented, r) {
			t.Errorf("%s: %s is not documented", what, r)
		}
	}
	if len(documented) != len(slices.Compact(slices.Sorted(slices.Values(documented)))) {
		t.Errorf("%s: something is documented twice: %v", what, documented)
	}
}

var link = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)

// TestLinksLeadSomewhere: every relative link leads to a file, and to a heading
// if it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", "adr/*.md", "kinds/*.md", "../deploy/*/*.md", "../federation/testdata/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		_, prose := blocks(read(t, page))
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(prose, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), file)
			if file == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
}

var (
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped  = regexp.MustCompile(`[^\pL\pN _-]`)
	guideRef = regexp.MustCompile(`\bdocs/[a-z/-]+\.md\b`)
)

// anchors are the names under which a page's headings are linked to.
func anchors(page string) []string {
	_, prose := blocks(page)
	var all []string
	for _, m := range heading.FindAllStringSubmatch(prose, -1) {
		all = append(all, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestTheGuideIsReached: README leads to the index, the index to every page, and files
// for deployment name pages that exist.
func TestTheGuideIsReached(t *testing.T) {
	if !slices.Contains(linksOf(t, "../README.md"), "../docs/README.md") {
		t.Error("the README of the project does not link to docs/README.md")
	}
	linked := linksOf(t, "README.md")
	for _, page := range guide(t) {
		if page != "README.md" && page != "../README.md" && !slices.Contains(linked, page) {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
	kinds, err := filepath.Glob("kinds/*.md")
	if err != nil {
		t.Fatal(err)
	}
	linked = append(linked, linksOf(t, "kinds/README.md")...)
	for _, page := range kinds {
		if !slices.Contains(linked, page) {
			t.Errorf("kinds/README.md does not link to %s", page)
		}
	}
	for _, file := range []string{sidecarFile, readerFile} {
		for _, ref := range guideRef.FindAllString(read(t, file), -1) {
			if _, err := os.Stat("../" + ref); err != nil {
				t.Errorf("%s names %s, which does not exist", file, ref)
			}
		}
	}
}

// linksOf are the files to which a page links, as paths from this folder.
func linksOf(t *testing.T, page string) []string {
	t.Helper()
	var files []string
	for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
		file, _, _ := strings.Cut(m[1], "#")
		files = append(files, filepath.Join(filepath.Dir(page), file))
	}
	return files
}

const (
	mostSentences = 2   // in a cell of a table
	mostCell      = 200 // characters of a cell as they are shown: two lines
)

var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

var sentenceEnd = regexp.MustCompile("[.!?] [A-Z`(]")

// TestTablesDoNotExplain: a table is for lookup. What needs more than two lines stands below the
// table, or has a section to which the cell links.
func TestTablesDoNotExplain(t *testing.T) {
	kinds, err := filepath.Glob("kinds/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(guide(t), kinds...) {
		_, prose := blocks(read(t, page))
		for line := range strings.Lines(prose) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for _, cell := range cellsOf(line) {
				text := codeSpan.ReplaceAllString(link.ReplaceAllString(cell, "LINK"), "CODE")
				sentences := 1 + len(sentenceEnd.FindAllString(text, -1))
				shown := utf8.RuneCountInString(strings.ReplaceAll(linkText.ReplaceAllString(cell, "$1"), "`", ""))
				if sentences > mostSentences || shown > mostCell {
					t.Errorf("%s: a cell has %d sentences and %d characters; move the explanation below the table: %.80s", page, sentences, shown, cell)
				}
			}
		}
	}
}

func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
