package words

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mostWords is how long a sentence may be. The aim is 25.
const mostWords = 35

var (
	startsItem = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s`)
	target     = regexp.MustCompile(`\]\([^)\s]*\)`)
)

// A sentence is one of a page, with the line that its paragraph begins at.
type sentence struct {
	line int
	text string
}

// sentencesOf are those of a page's paragraphs and list items. Code, tables, headings, quotes
// and HTML have none.
func sentencesOf(page string) (all []sentence) {
	var paragraph []string
	began := 0
	end := func() {
		text := target.ReplaceAllString(strings.Join(paragraph, " "), "]")
		paragraph = nil
		for _, s := range split(text) {
			all = append(all, sentence{began, s})
		}
	}
	for n, line := range strings.Split(proseOf(page), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
			end()
		case strings.HasPrefix(text, "|"), strings.HasPrefix(text, "#"), strings.HasPrefix(text, ">"), strings.HasPrefix(text, "<"):
			end()
		default:
			if startsItem.MatchString(line) {
				end()
			}
			if len(paragraph) == 0 {
				began = n + 1
			}
			paragraph = append(paragraph, text)
		}
	}
	end()
	return all
}

// TestM19SentencesAreShort: no sentence of the guide, the decisions or a page of the root
// folder or of a room has more than 35 words. Text in backquotes counts as one.
func TestM19SentencesAreShort(t *testing.T) {
	for _, page := range guide(t) {
		if filepath.Base(page) == "requirements.md" {
			continue // one line for each requirement
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sentencesOf(string(text)) {
			if n := len(strings.Fields(s.text)); n > mostWords {
				t.Errorf("%s, line %d: %d words: %s", page, s.line, n, s.text)
			}
		}
	}
}

func TestSentencesOfAPage(t *testing.T) {
	page := "# A title. Of two\n\nOne line,\nand `a. code. span`. Two, this one!\n- item [a b](c.md#d) here\n  goes on\n- next\n\n" +
		"```sh\nnot. this.\n```\n| a. | b. |\nEnd"
	want := "3 One line, and CODE. |3 Two, this one!|5 - item [a b] here goes on|7 - next|13 End"
	var got []string
	for _, s := range sentencesOf(page) {
		if strings.TrimSpace(s.text) != "" {
			got = append(got, strconv.Itoa(s.line)+" "+s.text)
		}
	}
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", strings.Join(got, "|"))
	}
}
