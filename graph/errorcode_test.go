package graph_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	for _, room := range []string{"federation/config/apply", "federation/config/schema", "federation/config/manifest", "graph/transport", "internal/attach", "internal/kube"} {
		for _, code := range declaredCodes(t, room) {
			if room == "internal/kube" {
				code = "KUBECONFIG_" + strings.ToUpper(strings.ReplaceAll(code, "-", "_"))
			}
			if listed[code] == "" {
				t.Errorf("%s of %s is not listed", code, room)
			}
		}
	}
	errorsPage, clustersPage := docsPage(t, "errors.md"), docsPage(t, "clusters.md")
	for code, url := range listed {
		_, place, _ := strings.Cut(url, "docs/")
		known := place == "clusters#kubeconfigs-what-is-refused" ||
			place == "clusters#attaching-and-detaching" && strings.Contains(clustersPage, "| `"+code+"` |") ||
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

// declaredCodes are the constants of a type Code in the room.
func declaredCodes(t *testing.T, room string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(room), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files: %v", room, err)
	}
	declared := regexp.MustCompile(`(?m)\bCode += +"([A-Za-z0-9_-]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
	}
	return found
}
