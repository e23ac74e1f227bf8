package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// checkLists are those of CONTRIBUTING.md, by their headings. Each has a folder below
// testdata/checklists with what somebody writes who follows it: new files, and a patch
// of existing ones.
var checkLists = []struct {
	heading, folder string
	most            int // files, without tests, documents and what is generated
}{
	{"a new registry", "registry", 4},
	{"a new configuration kind", "kind", 3},
	{"a new field", "field", 2},
	{"a new field that is looked up", "resolver", 3},
	{"a new xDS type", "xdstype", 4},
}

// afterLists generates code, compiles and tests. All lists are followed in one copy of
// the tree, because compiling it is what costs time. With -short, no test starts a real program: for a test of the guide, the copy
// would compile and link the hub once more.
var afterLists = [][]string{
	{"generate", "./graph"},
	{"build", "./graph/...", "./internal/hub"},
	{"test", "-vet=off", "./registries/fixed", "./xds/envoy/runtime", "./internal/hub/kinds"},
	{"test", "-vet=off", "./xds/envoy", "./internal/hub/clusters", "-run", "^TestG76"},
	{"test", "-vet=off", "-short", ".", "./docs", "-run", "^Test(ImportsFollowTheTable$|NoImportRunsUp$|K8[2-5]|TypesOfXDSAreListed$|.*(Kind|GraphQL|Node))"},
}

// afterListsInFull write what tests write (answers, the lock of the schema, the role), and run the rooms' own
// tests that look at every kind, field and type.
var afterListsInFull = [][]string{
	{"test", "-vet=off", "./graph", "-run", "^Test(SchemaLock|Scenarios)", "-update"},
	{"test", "-vet=off", "./federation/config/crd", "-run", "^TestG05", "-update"},
	{"test", "-vet=off", "-short", "./graph", "-run", "^Test(R64|SchemaLock|Scenarios|Contract)"},
	{"test", "-vet=off", "-short", "./federation/config/crd", "./federation/config/schema", "-run", "^Test(G05|.*Kind)"},
	{"test", "-vet=off", "-short", "./xds", "-run", "^Test(X24|X39|Property)"},
	{"test", "-vet=off", "./docs", "-run", "^TestFieldsPage", "-update"},
	{"test", "-vet=off", "-short", "./docs", "-run", "^Test(EveryKeyIsDocumented|FieldsPage)"},
}

// unoptimised is how make test-unit compiles our packages: it takes about half of the time.
const unoptimised = "GOFLAGS=-trimpath '-gcflags=isthmus.dev/isthmus/...=-N -l -dwarf=false' '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'"

// TestK90CheckListsAreComplete follows each list in a copy of the tree. Following it
// touches the files that it names and no others, and the result compiles and passes
// the tests of architecture and documents.
func TestK90CheckListsAreComplete(t *testing.T) {
	t.Parallel()
	copied := copyTree(t)
	for _, list := range checkLists {
		t.Run(list.folder, func(t *testing.T) {
			touched := followList(t, copied, filepath.Join("testdata/checklists", list.folder))
			named := filesOf(t, list.heading)
			for _, file := range touched {
				if !slices.ContainsFunc(named, func(p *regexp.Regexp) bool { return p.MatchString(file) }) {
					t.Errorf("%s must be touched, and the list in CONTRIBUTING.md does not name it", file)
				}
			}
			for _, p := range named {
				if !slices.ContainsFunc(touched, p.MatchString) {
					t.Errorf("the list in CONTRIBUTING.md names %s, which need not be touched", p)
				}
			}
			code := slices.DeleteFunc(touched, func(file string) bool {
				return strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".md")
			})
			if len(code) > list.most {
				t.Errorf("%d files must be touched, want at most %d: %s", len(code), list.most, strings.Join(code, ", "))
			}
		})
	}
	if t.Failed() {
		return
	}
	after := afterLists
	if !testing.Short() {
		after = slices.Concat(afterLists, afterListsInFull)
	}
	for _, arguments := range after {
		runIn(t, copied, "go", arguments...)
	}
}

// copyTree copies the tree, without what is hidden or built.
func copyTree(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || path == "..":
			return err
		case strings.HasPrefix(d.Name(), ".") || path == "../bin":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		writeFile(t, filepath.Join(to, strings.TrimPrefix(path, "../")), data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// followList adds the files of a folder to the copy and patches it. It returns the files
// that are new or changed.
func followList(t *testing.T, copied, folder string) []string {
	t.Helper()
	var touched []string
	files := filepath.Join(folder, "files")
	err := filepath.WalkDir(files, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(files, path)
		writeFile(t, filepath.Join(copied, file), data)
		touched = append(touched, file)
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	edits, err := filepath.Abs(filepath.Join(folder, "edits.patch"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(edits)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`).FindAllStringSubmatch(string(text), -1) {
		touched = append(touched, line[1])
	}
	runIn(t, copied, "git", "apply", "--whitespace=nowarn", edits)
	return touched
}

// filesOf are the files that a list names before the colon of an item. A word in
// capitals means any name.
func filesOf(t *testing.T, heading string) []*regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "## Check list: "+heading+"\n")
	if !found {
		t.Fatalf("CONTRIBUTING.md has no check list for %s", heading)
	}
	list, _, _ = strings.Cut(list, "\n## ")
	capitals := regexp.MustCompile(`[A-Z]{3,}`)
	var named []*regexp.Regexp
	for _, item := range regexp.MustCompile(`(?m)^\d+\. ([^:]*):`).FindAllStringSubmatch(list, -1) {
		for _, span := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(item[1], -1) {
			pattern := regexp.QuoteMeta(span[1])
			if !isDocument(span[1]) {
				pattern = capitals.ReplaceAllString(pattern, `[^/]+`)
			}
			named = append(named, regexp.MustCompile("^"+pattern+"$"))
		}
	}
	return named
}

// isDocument reports whether the capitals of a name are its own.
func isDocument(file string) bool {
	return slices.Contains([]string{"ARCHITECTURE.md", "IMPORTS.md", "docs/kinds/README.md"}, file)
}

func runIn(t *testing.T, dir, name string, arguments ...string) {
	t.Helper()
	began := time.Now()
	defer func() {
		t.Logf("%s %s: %s", name, strings.Join(arguments, " "), time.Since(began).Round(100*time.Millisecond))
	}()
	cmd := exec.Command(name, arguments...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(testbed.Shared(), unoptimised)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, bytes.TrimSpace(out))
	}
}
