package isthmus_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	requirementLine   = regexp.MustCompile(`(?m)^- \*\*([A-Z0-9-]+)\*\* \S.+$`)
	requirementTest   = regexp.MustCompile(`\bfunc (?:Test|Fuzz)(B[A-Z]|[FSXPRGKUMN])(\d+)`)
	requirementCode   = regexp.MustCompile(`\b(?:(B-[A-Z]|[FSX])([1-9]\d?)|([P])([1-9]\d?)|([RGKUMN])(\d\d\d?))\b`)
	requirementPrefix = regexp.MustCompile(`(?m)^\| ([A-Z]) \|`)
	comment           = regexp.MustCompile(`//.*`)
)

// TestRequirementsAreListed holds docs/requirements.md to the code: each ID that
// the name of a test or a comment cites has its line, and each line is cited.
func TestRequirementsAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed, explained := map[string]bool{}, map[string]bool{}
	for _, m := range requirementPrefix.FindAllStringSubmatch(string(page), -1) {
		explained[m[1]] = true
	}
	for _, m := range requirementLine.FindAllStringSubmatch(string(page), -1) {
		if listed[m[1]] {
			t.Errorf("docs/requirements.md has two lines for %s", m[1])
		}
		listed[m[1]] = true
		if !explained[m[1][:1]] {
			t.Errorf("docs/requirements.md has %s, and its table has no row for %s", m[1], m[1][:1])
		}
	}
	cited := citedRequirements(t)
	for id, file := range cited {
		if !listed[id] {
			t.Errorf("%s cites %s: docs/requirements.md has no line for it", file, id)
		}
	}
	for id := range listed {
		if cited[id] == "" {
			t.Errorf("docs/requirements.md lists %s, which no test and no comment cites", id)
		}
	}
}

// citedRequirements maps each ID to a file that cites it.
func citedRequirements(t *testing.T) map[string]string {
	t.Helper()
	cited := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "node_modules") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".go" || strings.Contains(path, ".gen") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, id := range requirementsIn(string(source)) {
			cited[id] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cited
}

func requirementsIn(source string) (ids []string) {
	for _, m := range requirementTest.FindAllStringSubmatch(source, -1) {
		number := strings.TrimLeft(m[2], "0")
		switch {
		case strings.Contains("RGKUMN", m[1]):
			ids = append(ids, m[1]+m[2])
		case strings.HasPrefix(m[1], "B"):
			ids = append(ids, "B-"+m[1][1:]+number)
		default:
			ids = append(ids, m[1]+number)
		}
	}
	for _, c := range comment.FindAllString(source, -1) {
		for _, m := range requirementCode.FindAllStringSubmatch(c, -1) {
			ids = append(ids, m[1]+m[2]+m[3]+m[4]+m[5]+m[6])
		}
	}
	return ids
}
