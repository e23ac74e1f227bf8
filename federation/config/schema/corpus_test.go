package schema

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation/config/manifest"
)

// The corpus is one object a file. A file under invalid begins with a comment a
// problem: "# CODE field".

func corpus(t testing.TB, sort string) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/" + sort + "/*.yaml")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

func read(t testing.TB, file string) (object map[string]any, text string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents, problems := manifest.Parse(file, data, manifest.Limits{})
	if len(problems) > 0 || len(documents) != 1 {
		t.Fatalf("%s: %d documents, problems %v", file, len(documents), problems)
	}
	return documents[0].Value, string(data)
}

func TestCorpusValid(t *testing.T) {
	set := load(t)
	for _, file := range corpus(t, "valid") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			object, _ := read(t, file)
			admitted, problems := set.Admit(object, nil)
			if len(problems) > 0 {
				t.Fatalf("%v", problems)
			}
			again, problems := set.Admit(admitted, admitted)
			if diff := cmp.Diff(admitted, again); diff != "" || len(problems) > 0 {
				t.Errorf("admitting what was admitted changes it (-first +second):\n%s%v", diff, problems)
			}
		})
	}
}

func TestCorpusInvalid(t *testing.T) {
	set := load(t)
	for _, file := range corpus(t, "invalid") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			object, text := read(t, file)
			admitted, problems := set.Admit(object, nil)
			if admitted != nil || len(problems) == 0 {
				t.Fatal("it is accepted")
			}
			comments, rest := "", text
			for strings.HasPrefix(rest, "# ") {
				line, after, _ := strings.Cut(rest, "\n")
				comments, rest = comments+line+"\n", after
			}
			got := summary(problems)
			if *update {
				if err := os.WriteFile(file, []byte(got+rest), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(comments, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s%v", diff, problems)
			}
		})
	}
}

func summary(problems []Problem) string {
	var lines []string
	for _, p := range problems {
		if p.Code != NotChecked {
			lines = append(lines, strings.TrimSpace("# "+string(p.Code)+" "+p.Field)+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
