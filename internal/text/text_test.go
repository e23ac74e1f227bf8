package text_test

import (
	"fmt"
	"testing"

	"isthmus.dev/isthmus/internal/text"
)

func TestCut(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		most int
		want string
	}{
		"short":               {"abc", 3, "abc"},
		"empty":               {"", 0, ""},
		"cut":                 {"abcdefgh", 6, "abc…"},
		"within a character":  {"aéééé", 7, "aé…"},
		"of invalid UTF-8":    {"a\xffbcdefgh", 7, "abc…"},
		"less than the mark":  {"abcdefgh", 2, "…"},
		"valid as it is":      {"\xff", 1, "\xff"},
		"characters of three": {"€€€€", 9, "€€…"},
	} {
		if got := text.Cut(row.text, row.most); got != row.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestFirst(t *testing.T) {
	for most, want := range map[int]string{1: "[a] and 2 more", 2: "[a b] and 1 more", 3: "[a b c]", 4: "[a b c]"} {
		first, more := text.First([]string{"a", "b", "c"}, most)
		if got := fmt.Sprint(first) + more; got != want {
			t.Errorf("the first %d: %q, want %q", most, got, want)
		}
	}
}
