package cmdutil

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codesIn are the codes that the Go files of a room declare.
func codesIn(t *testing.T, room string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(room), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files: %v", room, err)
	}
	found := map[string]bool{}
	declared := regexp.MustCompile(`(?m)\bCode += +(?:"([A-Z0-9_]+)"|errcode\.(\w+))`)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			found[m[1]+map[string]string{"ParseFailed": "GRAPHQL_PARSE_FAILED", "ValidationFailed": "GRAPHQL_VALIDATION_FAILED"}[m[2]]] = true
		}
	}
	return found
}

// TestEveryCodeHasARemedy: of a refusal, and of an error of GraphQL.
func TestEveryCodeHasARemedy(t *testing.T) {
	refusals := map[string]bool{}
	for _, room := range []string{"federation/config/apply", "federation/config/schema", "federation/config/manifest"} {
		for code := range codesIn(t, room) {
			refusals[code] = true
		}
	}
	if len(refusals) < 40 || !refusals["IDEMPOTENCY_KEY_REUSED"] || !refusals["TAB"] {
		t.Fatalf("found %d codes: %v", len(refusals), refusals)
	}
	known := map[string]bool{}
	for _, r := range remedies() {
		for _, code := range r.codes {
			if known[code] || !refusals[code] {
				t.Errorf("%s has two remedies, or nothing has it", code)
			}
			known[code] = true
		}
	}
	unknown := Remedy(map[string]bool{"NO_SUCH_CODE": true})
	for code := range refusals {
		if do := Remedy(map[string]bool{code: true}); do == unknown || do == "" {
			t.Errorf("%s has no remedy", code)
		}
	}
	answers := codesIn(t, "graph/transport")
	if len(answers) < 12 {
		t.Fatalf("found %v", answers)
	}
	for code := range answers {
		if do := answerStep(code); do == "" || do == answerStep("NO_SUCH_CODE") {
			t.Errorf("%s of an answer has no remedy", code)
		}
	}
}

// TestR43EveryCodeHasASectionThatDocURLNames: docUrl leads to a section.
func TestR43EveryCodeHasASectionThatDocURLNames(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"federation/config/apply", "federation/config/schema", "federation/config/manifest", "graph/transport"} {
		for code := range codesIn(t, room) {
			if !strings.Contains(string(page), "\n## "+code+"\n") {
				t.Errorf("docs/errors.md has no section for %s, which %s has", code, room)
			}
		}
	}
}
