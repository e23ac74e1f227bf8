package graph_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"isthmus.dev/isthmus/graph/model"
)

// TestErrorCodesAreListed: those of every room that refuses requests, each with a place
// in the documentation that exists.
func TestErrorCodesAreListed(t *testing.T) {
	listed := map[string]string{}
	var order []string
	for _, one := range at(newHub(t).answer("{errorCodes{code docUrl}}", nil), "errorCodes").([]any) {
		code := at(one, "code").(string)
		listed[code], order = at(one, "docUrl").(string), append(order, code)
	}
	if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != len(order) {
		t.Errorf("the codes are %v", order)
	}
	errorsPage, clustersPage := docsPage(t, "errors.md"), docsPage(t, "clusters-reference.md")
	for code, url := range listed {
		_, place, _ := strings.Cut(url, "docs/")
		known := place == "clusters-reference#kubeconfigs-what-is-refused" ||
			place == "clusters-reference#checks" && strings.Contains(clustersPage, "| `"+code+"` |") ||
			place == "errors#"+strings.ToLower(code) && strings.Contains(errorsPage, "\n## "+code+"\n")
		if !known {
			t.Errorf("%s says nothing of %s", url, code)
		}
	}
}

func docsPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFindingCodesAreListed each with a place in the documentation that has it in a table.
func TestFindingCodesAreListed(t *testing.T) {
	before := ""
	for _, one := range at(newHub(t).answer("{findingCodes{code docUrl}}", nil), "findingCodes").([]any) {
		code := at(one, "code").(string)
		if code <= before {
			t.Errorf("%s comes after %s", code, before)
		}
		before = code
		_, place, _ := strings.Cut(at(one, "docUrl").(string), "docs/")
		page, heading, _ := strings.Cut(place, "#")
		if strings.HasSuffix(page, "/") {
			page += "README"
		}
		if !strings.Contains(partOf(docsPage(t, page+".md"), heading), "| `"+code+"` |") {
			t.Errorf("%s says nothing of %s", place, code)
		}
	}
}

// partOf is the part of a page below the heading of that anchor.
func partOf(page, anchor string) string {
	for part := range strings.SplitSeq("\n"+page, "\n## ") {
		title, _, _ := strings.Cut(part, "\n")
		if strings.ReplaceAll(strings.ToLower(title), " ", "-") == anchor {
			return part
		}
	}
	return ""
}

// TestAllCodesAreListed: every code that the program gives is in one of the lists, and
// every listed code is given.
func TestAllCodesAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, of := range model.ErrorCodes() {
		listed[of.Code] = true
	}
	for _, of := range model.FindingCodes() {
		listed[of.Code] = true
	}
	given := readProgram(t).codes()
	for code, where := range given {
		if !listed[code] {
			t.Errorf("%s of %s is neither among errorCodes nor among findingCodes: list it in graph/model, and document it", code, where)
		}
	}
	for code := range listed {
		if given[code] == "" {
			t.Errorf("%s is listed, and nothing gives it", code)
		}
	}
}

// TestR87K93CodesStay: what was a code before names and texts were revised still is one, or
// CHANGELOG names the new one. testdata/codes.txt has every code that there ever was: a new
// one is added to it by hand, so that its removal is noticed, too (K93).
func TestR87K93CodesStay(t *testing.T) {
	before, err := os.ReadFile(filepath.Join("testdata", "codes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := os.ReadFile(filepath.Join("..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]bool{}
	for _, of := range model.ErrorCodes() {
		now[of.Code] = true
	}
	for _, of := range model.FindingCodes() {
		now[of.Code] = true
	}
	ever := strings.Fields(string(before))
	for code := range now {
		if !slices.Contains(ever, code) {
			t.Errorf("%s is not in testdata/codes.txt: add it, so that its removal is noticed", code)
		}
	}
	for _, code := range ever {
		if !now[code] && !renamed(string(changes), code, now) {
			t.Errorf("%s is not a code any more: programs that know it would miss it. Keep it, or write the line \"- The code `%s` is now `NEW_CODE`\" in CHANGELOG", code, code)
		}
	}
}

// renamed reports whether the changes have a line that says which code a code is now.
func renamed(changes, code string, now map[string]bool) bool {
	_, line, found := strings.Cut(changes, "\n- The code `"+code+"` is now `")
	next, _, _ := strings.Cut(line, "`")
	return found && now[next]
}

func TestR87RenamedCodesAreListed(t *testing.T) {
	now := map[string]bool{"NEW": true}
	for changes, want := range map[string]bool{
		"\n- The code `OLD` is now `NEW`.\n":   true,
		"\n- The code `OLD` is now `NEWER`.\n": false,
		"\n- The code `OLDER` is now `NEW`.\n": false,
		"":                                     false,
	} {
		if got := renamed(changes, "OLD", now); got != want {
			t.Errorf("%q: %t", changes, got)
		}
	}
}
