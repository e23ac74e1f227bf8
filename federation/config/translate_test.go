package config_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite what the translations should give")

// editText is an Edit as a person would want to compare it.
type editText struct {
	Services    map[string]*federation.Shard    `json:"services,omitempty"`
	Workloads   map[string]*federation.Workload `json:"workloads,omitempty"`
	Objects     []string                        `json:"objects,omitempty"`
	Problems    []string                        `json:"problems,omitempty"`
	Allocations []string                        `json:"allocations,omitempty"`
}

func renderEdit(t testing.TB, e federation.Edit, missing []config.Change) []byte {
	t.Helper()
	out := editText{Services: map[string]*federation.Shard{}, Workloads: map[string]*federation.Workload{}}
	for key, s := range e.Services.Set {
		out.Services[key.String()] = s
	}
	for key, w := range e.Workloads.Set {
		out.Workloads[key.String()] = w
	}
	for _, o := range e.Objects.Set {
		text := o.Key.Kind + " " + o.Key.Namespace + "/" + o.Key.Name
		if len(o.Names) > 0 {
			text += " names " + strings.Join(o.Names, " ")
		}
		if len(o.ProxyLabels) > 0 {
			text += " labels " + strings.Join(o.ProxyLabels, " ")
		}
		out.Objects = append(out.Objects, text)
	}
	for _, p := range e.Problems.Set {
		out.Problems = append(out.Problems, fmt.Sprintf("%s: %s %s: %s", p.Code, p.Object, p.Field, p.Message))
	}
	for _, c := range missing {
		out.Allocations = append(out.Allocations, c.Key.Namespace+"/"+c.Key.Name)
	}
	slices.Sort(out.Objects)
	slices.Sort(out.Problems)
	data, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTranslations reads testdata/*.txtar: manifests.yaml in, want/edit.yaml out.
func TestTranslations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { translate(t, file) })
	}
}

func translate(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil || len(archive.Files) != 2 || archive.Files[0].Name != "manifests.yaml" || archive.Files[1].Name != "want/edit.yaml" {
		t.Fatalf("%s: %v; it needs manifests.yaml and want/edit.yaml", file, err)
	}
	var events []config.Event
	for m := range strings.SplitSeq(string(archive.Files[0].Data), "---\n") {
		events = append(events, config.Event{New: object(t, 1, m)})
	}
	state, edit := config.NewState(config.Options{Hub: "hub"}).Next(events, 1)
	got := renderEdit(t, edit, state.MissingAllocations())
	if *update {
		archive.Files[1].Data = got
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := archive.Files[1].Data; !bytes.Equal(bytes.TrimSpace(want), bytes.TrimSpace(got)) {
		t.Errorf("run with -update to accept\n--- want\n%s--- got\n%s", want, got)
	}
}
