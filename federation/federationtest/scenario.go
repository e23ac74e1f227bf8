// Package federationtest loads scenarios: files that say what clusters have, how
// the mesh is configured and which proxies are connected, and what each part of the
// hub computes from that. README.md in this folder documents the format.
package federationtest

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/deploy/testbed/toolset"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

var update = flag.Bool("update", false, "rewrite the wanted sections of the scenarios")

// Proxy is a proxy of a scenario as its first xDS request names it.
type Proxy struct {
	Name     string         `json:"name"`
	ID       string         `json:"id"` // TYPE~IP~ID~DOMAIN
	Metadata map[string]any `json:"metadata"`
	Place    string         `json:"locality"` // REGION/ZONE/SUBZONE
	// Extensions are the names of those with which the proxy is built.
	Extensions []string `json:"extensions"`
}

// Locality is where the proxy says that it is.
func (p Proxy) Locality() federation.Locality { return locality(p.Place) }

// Scenario is a loaded scenario, at its beginning or after one of its steps.
type Scenario struct {
	Name      string
	Aggregate *federation.Aggregate // has all that registries and configuration say
	Config    *config.State
	Edit      federation.Edit // what followed from the latest change of the configuration
	Proxies   []Proxy

	path    string
	archive *txtar.Archive
	at      string              // prefix of the sections of the present step
	steps   []string            // those that are to come
	objects *federation.Writer  // of the configuration
	clients map[string]registry // by cluster

	read                  map[federation.ObjectKey]*config.Object // Ingresses and IngressClasses of clusters
	ingresses, gatewayAPI translated
}

// Files returns the paths of all scenarios.
func Files(t testing.TB) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder(t), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".txtar" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the scenarios: %v, %d files", err, len(files))
	}
	return files
}

func folder(t testing.TB) string {
	t.Helper()
	root, err := toolset.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "federation", "testdata", "scenarios")
}

// Each runs look as a subtest for every scenario, at its beginning and after each step.
func Each(t *testing.T, look func(t *testing.T, s *Scenario)) {
	t.Helper()
	EachFile(t, func(t *testing.T, s *Scenario) {
		look(t, s)
		for s.Next(t) {
			t.Run(s.Step(), func(t *testing.T) { look(t, s) })
		}
	})
}

// EachFile runs look as a subtest for every scenario, at its beginning.
func EachFile(t *testing.T, look func(t *testing.T, s *Scenario)) {
	t.Helper()
	dir := folder(t)
	for _, file := range Files(t) {
		name, err := filepath.Rel(dir, strings.TrimSuffix(file, ".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { look(t, Load(t, file)) })
	}
}

// Load reads a scenario and brings it to its beginning.
func Load(t testing.TB, file string) *Scenario {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatalf("reading a scenario: %v", err)
	}
	s := &Scenario{
		Name: filepath.Base(file), path: file, archive: archive, Aggregate: federation.NewAggregate(nil),
		Config: config.NewState(config.Options{Hub: "hub"}), clients: map[string]registry{}, read: map[federation.ObjectKey]*config.Object{},
	}
	if data, ok := s.Section("proxies.yaml"); ok {
		decode(t, "proxies.yaml", data, &s.Proxies)
	}
	s.checkSections(t)
	s.apply(t)
	return s
}

var sections = regexp.MustCompile(`^(proxies\.yaml$|(steps/[^/]+/)?(names\.yaml|keys\.yaml|(config|delete)(/[^/]+)?\.yaml|clusters/[^/]+\.yaml|` +
	`want/(snapshot\.yaml|translation\.yaml|status\.txt|sent\.txt|query\.graphql|answer\.json|xds/[^/]+/((clusters|endpoints|listeners|routes|names)\.yaml|reasons\.txt)))$)`)

func (s *Scenario) checkSections(t testing.TB) {
	t.Helper()
	for _, f := range s.archive.Files {
		if !sections.MatchString(f.Name) {
			t.Errorf("%s: no room reads the section %q", s.Name, f.Name)
		}
		if query := strings.TrimSuffix(f.Name, "answer.json") + "query.graphql"; strings.HasSuffix(f.Name, "want/answer.json") &&
			!slices.ContainsFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == query }) {
			t.Errorf("%s: %s has no %s", s.Name, f.Name, query)
		}
		parts := strings.Split(f.Name, "/")
		if parts[0] == "steps" && !slices.Contains(s.steps, parts[1]) {
			s.steps = append(s.steps, parts[1])
		}
		if i := slices.Index(parts, "xds"); i > 0 && !s.hasProxy(parts[i+1]) {
			t.Errorf("%s: the proxy of the section %q is not in proxies.yaml", s.Name, f.Name)
		}
	}
}

func (s *Scenario) hasProxy(name string) bool {
	return slices.ContainsFunc(s.Proxies, func(p Proxy) bool { return p.Name == name })
}

// Next brings the scenario to its next step, if there is one.
func (s *Scenario) Next(t testing.TB) bool {
	t.Helper()
	if len(s.steps) == 0 {
		return false
	}
	s.at, s.steps = "steps/"+s.steps[0]+"/", s.steps[1:]
	s.apply(t)
	return true
}

// Step is the name of the present step, empty at the beginning.
func (s *Scenario) Step() string { return strings.TrimSuffix(strings.TrimPrefix(s.at, "steps/"), "/") }

// apply gives the hub what is new at the present step.
func (s *Scenario) apply(t testing.TB) {
	t.Helper()
	s.applyNames(t)
	s.applyKeys(t)
	s.applyConfig(t)
	for _, f := range s.archive.Files {
		if id, ok := strings.CutPrefix(f.Name, s.at+"clusters/"); ok {
			s.applyCluster(t, strings.TrimSuffix(id, ".yaml"), f)
		}
	}
	s.applyIngresses()
	s.applyGatewayAPI()
}

// Snapshot is the view that follows from what the registries said.
func (s *Scenario) Snapshot() *federation.Snapshot { return s.Aggregate.Latest() }

// Section returns the contents of a section of the present step.
func (s *Scenario) Section(name string) ([]byte, bool) {
	i := slices.IndexFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == s.at+name })
	if i < 0 {
		return nil, false
	}
	return s.archive.Files[i].Data, true
}

// Wants reports whether the beginning or any step has the section.
func (s *Scenario) Wants(section string) bool {
	return slices.ContainsFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == section || strings.HasSuffix(f.Name, "/"+section) })
}

// Compare checks what a room made against its section, or writes it there with
// -update. A scenario without the section asks nothing of that room.
func (s *Scenario) Compare(t testing.TB, section string, got []byte) {
	t.Helper()
	want, ok := s.Section(section)
	if !ok {
		return
	}
	got = lines(got)
	if *update {
		s.rewrite(t, section, got)
		return
	}
	want = lines(want)
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %s%s differs (run with -update to accept)\n--- want\n%s--- got\n%s", s.Name, s.at, section, want, got)
	}
}

// lines is the content of a section without empty lines around it.
func lines(content []byte) []byte {
	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		return nil
	}
	return append(content, '\n')
}

// rewrite reads the file again, so that rooms that update one after the other
// keep each other's sections.
func (s *Scenario) rewrite(t testing.TB, section string, data []byte) {
	t.Helper()
	archive, err := txtar.ParseFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range archive.Files {
		if archive.Files[i].Name == s.at+section {
			archive.Files[i].Data = data
		}
	}
	if err := os.WriteFile(s.path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func decode(t testing.TB, name string, data []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("section %s: %v", name, err)
	}
}
