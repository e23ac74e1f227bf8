package isthmus_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "isthmus.dev/isthmus/"

// rule is a row of the import table in ARCHITECTURE.md.
type rule struct{ ours, outside []string }

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

func TestImportsFollowTheTable(t *testing.T) {
	rules, names := readTables(t)
	used := map[string]bool{}
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		row, r, ok := ruleFor(room, rules)
		if !ok {
			t.Errorf("room %s has no row in ARCHITECTURE.md: say what it may import", room)
			continue
		}
		used[row] = true
		for _, imported := range p.Imports {
			if !r.allows(imported, names) {
				t.Errorf("%s imports %s, which its row in ARCHITECTURE.md does not allow", room, imported)
			}
		}
	}
	for row := range rules {
		if !used[row] {
			t.Errorf("ARCHITECTURE.md has a row for %s, which does not exist", row)
		}
	}
}

func readTables(t *testing.T) (map[string]rule, map[string][]string) {
	t.Helper()
	file, err := os.Open("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rules, names := map[string]rule{}, map[string][]string{}
	table := ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		cells := strings.Split(strings.Trim(lines.Text(), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(lines.Text(), "|"):
			table = ""
		case strings.HasPrefix(cells[0], "---"):
		case table == "":
			table = cells[0]
		case table == "room":
			rules[cells[0]] = rule{ours: words(cells[1]), outside: words(cells[2])}
		case table == "name":
			names[cells[0]] = strings.Fields(cells[1])
		}
	}
	return rules, names
}

func words(cell string) []string {
	var list []string
	for w := range strings.SplitSeq(cell, ",") {
		if w = strings.TrimSpace(w); w != "–" {
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
	if room, ours := strings.CutPrefix(imported, module); ours {
		for _, w := range r.ours {
			base, below := strings.CutSuffix(w, "/…")
			if w == "…" || w == room || below && strings.HasPrefix(room, base+"/") {
				return true
			}
		}
		return false
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	for _, w := range r.outside {
		if w == "…" {
			return true
		}
		for _, prefix := range names[w] {
			if imported == prefix || strings.HasPrefix(imported, prefix+"/") {
				return true
			}
		}
	}
	return false
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Standard,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath != strings.TrimSuffix(module, "/") {
			all = append(all, p)
		}
	}
}
