package isthmus_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "isthmus.dev/isthmus/"

// rule is a row of the import table in IMPORTS.md.
type rule struct {
	ours, outside []string
	inTests       []string        // rooms and modules that only the tests import
	used          map[string]bool // words of the row that some import needs
}

// testModules are those that every test may import.
var testModules = []string{"github.com/google/go-cmp", "go.uber.org/goleak", "pgregory.net/rapid"}

// goPackage is the output of `go list -json` for a package.
type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImportsFollowTheTable(t *testing.T) {
	rules, names := readTables(t)
	described := describedRooms(t)
	used := map[string]bool{}
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		row, r, ok := ruleFor(room, rules)
		if !ok {
			t.Errorf("room %s has no row in IMPORTS.md: say what it may import", room)
			continue
		}
		used[row] = true
		if !slices.ContainsFunc(described, func(d string) bool { return room == d || strings.HasSuffix(room, "/"+d) }) {
			t.Errorf("ARCHITECTURE.md does not say what %s is for", room)
		}
		for _, imported := range p.Imports {
			if !r.allows(imported, names) {
				t.Errorf("%s imports %s, which its row in IMPORTS.md does not allow", room, imported)
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if imported != p.ImportPath && !r.allows(imported, names) && !r.allowsInTests(imported, names) {
				t.Errorf("the tests of %s import %s, which their row in IMPORTS.md does not allow", room, imported)
			}
		}
	}
	for row, r := range rules {
		if !used[row] {
			t.Errorf("IMPORTS.md has a row for %s, which does not exist", row)
			continue
		}
		for _, word := range slices.Concat(r.ours, r.outside, r.inTests) {
			if !r.used[word] {
				t.Errorf("IMPORTS.md lets %s import %s, which it does not need: take it out of the row", row, word)
			}
		}
	}
}

// mostWords keeps ARCHITECTURE.md on three printed pages.
const mostWords = 1500

func TestArchitectureFitsOnThreePages(t *testing.T) {
	if n := len(strings.Fields(readArchitecture(t))); n > mostWords {
		t.Errorf("ARCHITECTURE.md has %d words, and %d are the most: package comments are the place for details", n, mostWords)
	}
}

// describedRooms are the rooms that ARCHITECTURE.md lists, by their path or its end.
func describedRooms(t *testing.T) []string {
	t.Helper()
	_, lists, found := strings.Cut(readArchitecture(t), "\n## Rooms\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no section on rooms")
	}
	var rooms []string
	for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(lists, -1) {
		rooms = append(rooms, span[1])
	}
	return rooms
}

func readArchitecture(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func readTables(t *testing.T) (map[string]rule, map[string][]string) {
	t.Helper()
	rules, names := map[string]rule{}, map[string][]string{}
	for _, cells := range readTable(t, "room", 4) {
		rules[cells[0]] = rule{ours: words(cells[1]), outside: words(cells[2]), inTests: words(cells[3]), used: map[string]bool{}}
	}
	for _, cells := range readTable(t, "name", 2) {
		names[cells[0]] = strings.Fields(cells[1])
	}
	return rules, names
}

// readTable returns the rows of the table in IMPORTS.md whose first column is called head.
func readTable(t *testing.T, head string, columns int) [][]string {
	t.Helper()
	page, err := os.ReadFile("IMPORTS.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	table := ""
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			table = ""
		case strings.HasPrefix(cells[0], "---"):
		case table == "":
			table = cells[0]
		case table == head && len(cells) != columns:
			t.Fatalf("the row of %s in IMPORTS.md has %d cells, not the %d of the table", cells[0], len(cells), columns)
		case table == head:
			rows = append(rows, cells)
		}
	}
	return rows
}

func words(cell string) []string {
	var list []string
	for w := range strings.SplitSeq(cell, ",") {
		w = strings.TrimSpace(w)
		if w != "–" {
			list = append(list, w)
		}
	}
	return list
}

// ruleFor prefers the room's own row to that of the rooms around it.
func ruleFor(room string, rules map[string]rule) (string, rule, bool) {
	if r, ok := rules[room]; ok {
		return room, r, true
	}
	for parent := room; strings.Contains(parent, "/"); {
		parent = parent[:strings.LastIndex(parent, "/")]
		if r, ok := rules[parent+"/…"]; ok {
			return parent + "/…", r, true
		}
	}
	return "", rule{}, false
}

func (r rule) allows(imported string, names map[string][]string) bool {
	return standard(imported) || r.uses(imported, slices.Concat(r.ours, r.outside), names)
}

func (r rule) allowsInTests(imported string, names map[string][]string) bool {
	return slices.ContainsFunc(testModules, func(m string) bool { return within(imported, m) }) ||
		r.uses(imported, r.inTests, names)
}

// uses notes which of the words the import needs, if any.
func (r rule) uses(imported string, words []string, names map[string][]string) bool {
	for _, w := range words {
		room, below := strings.CutSuffix(w, "/…")
		switch {
		case imported == module+w, below && strings.HasPrefix(imported, module+room+"/"):
		case slices.ContainsFunc(names[w], func(prefix string) bool { return within(imported, prefix) }):
		default:
			continue
		}
		r.used[w] = true
		return true
	}
	return false
}

func within(imported, prefix string) bool {
	return imported == prefix || strings.HasPrefix(imported, prefix+"/")
}

func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	return all
}

var packages = sync.OnceValues(func() (all []goPackage, err error) {
	out, err := exec.Command("go", "list", "-tags", "audit,browser", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if p.ImportPath != strings.TrimSuffix(module, "/") {
			all = append(all, p)
		}
	}
})
