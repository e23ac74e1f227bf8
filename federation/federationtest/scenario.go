// Package federationtest loads scenario files: one story each, told once and
// looked at by every room. A scenario is a txtar archive of
//
//	config.yaml                settings of the hub (may be absent)
//	clusters/ID.yaml           what the registry of that cluster says: services,
//	                           which may have a selector or bound services, and workloads
//	networks/ID.yaml           the spec of a Network
//	mesh.yaml                  the MeshSettings
//	names.yaml                 what names of gateways are resolved to
//	proxies.yaml               the proxies that connect
//	want/snapshot.yaml         the merged view                (federation)
//	want/xds/PROXY/TYPE.yaml   clusters, endpoints, listeners, routes (xds/envoy)
//	want/query.graphql         a question …                   (graph)
//	want/answer.json           … and its answer               (graph)
//
// A section with any other name is an error, so that none is silently ignored.
// With -update the tests rewrite the sections that they own.
package federationtest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"isthmus.dev/isthmus/deploy/testbed/toolset"
	"isthmus.dev/isthmus/federation"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the wanted sections of the scenarios")

// Proxy is a proxy of a scenario as its first xDS request names it.
type Proxy struct {
	Name     string              `json:"name"`
	ID       string              `json:"id"` // TYPE~IP~ID~DOMAIN
	Metadata map[string]any      `json:"metadata"`
	Locality federation.Locality `json:"locality"`
}

// Scenario is a loaded story.
type Scenario struct {
	Name      string
	Aggregate *federation.Aggregate // holds all that the registries said
	Proxies   []Proxy
	path      string
	archive   *txtar.Archive
}

// Files returns the paths of all scenarios.
func Files(t testing.TB) []string {
	t.Helper()
	root, err := toolset.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "federation", "testdata", "scenarios", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the scenarios: %v, %d files", err, len(files))
	}
	return files
}

// Each runs look on every scenario as a subtest.
func Each(t *testing.T, look func(t *testing.T, s *Scenario)) {
	for _, file := range Files(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { look(t, Load(t, file)) })
	}
}

// Load reads a scenario into a real Aggregate.
func Load(t testing.TB, file string) *Scenario {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatalf("reading scenario: %v", err)
	}
	s := &Scenario{Name: filepath.Base(file), path: file, archive: archive, Aggregate: federation.NewAggregate(nil)}
	s.checkSections(t)
	s.applyConfig(t)
	s.applyNetworks(t)
	for _, f := range archive.Files {
		if id, ok := strings.CutPrefix(f.Name, "clusters/"); ok {
			s.applyCluster(t, federation.ClusterID(strings.TrimSuffix(id, ".yaml")), f.Data)
		}
	}
	if data, ok := s.Section("proxies.yaml"); ok {
		decode(t, "proxies.yaml", data, &s.Proxies)
	}
	return s
}

func (s *Scenario) checkSections(t testing.TB) {
	t.Helper()
	known := regexp.MustCompile(`^(config\.yaml|mesh\.yaml|names\.yaml|networks/[^/]+\.yaml|clusters/[^/]+\.yaml|proxies\.yaml|want/snapshot\.yaml|want/xds/[^/]+/(clusters|endpoints|listeners|routes)\.yaml|want/query\.graphql|want/answer\.json)$`)
	for _, f := range s.archive.Files {
		if !known.MatchString(f.Name) {
			t.Errorf("%s: nobody reads section %q", s.Name, f.Name)
		}
	}
}

// Snapshot is the view that follows from what the registries said.
func (s *Scenario) Snapshot() *federation.Snapshot { return s.Aggregate.Latest() }

// Section returns a section's contents.
func (s *Scenario) Section(name string) ([]byte, bool) {
	i := slices.IndexFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.archive.Files[i].Data, true
}

// Compare checks what a room made against its section, or writes it there with
// -update. A scenario without the section asks nothing of that room.
func (s *Scenario) Compare(t testing.TB, section string, got []byte) {
	t.Helper()
	want, ok := s.Section(section)
	if !ok {
		return
	}
	got = append(bytes.TrimSpace(got), '\n')
	if *update {
		s.rewrite(t, section, got)
		return
	}
	if want = append(bytes.TrimSpace(want), '\n'); !bytes.Equal(got, want) {
		t.Errorf("%s: %s differs (run with -update to accept)\n--- want\n%s--- got\n%s", s.Name, section, want, got)
	}
}

// rewrite reads the file anew, so that rooms that update one after the other
// keep each other's sections.
func (s *Scenario) rewrite(t testing.TB, section string, data []byte) {
	archive, err := txtar.ParseFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range archive.Files {
		if archive.Files[i].Name == section {
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
