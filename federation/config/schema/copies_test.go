package schema

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "copy the definitions from the modules again")

// origins are where the copies come from: module, files, and the name here.
var origins = []struct{ module, files, name string }{
	{"istio.io/api", "kubernetes/customresourcedefinitions.gen.yaml", "istio"},
	{"sigs.k8s.io/gateway-api", "config/crd/standard/*.yaml", "gateway-api"},
	{"sigs.k8s.io/mcs-api", "config/crd/*.yaml", "mcs-api"},
}

func TestCopiesAreThoseOfTheModules(t *testing.T) {
	for _, o := range origins {
		want := definitionsOf(t, o.module, o.files)
		file := filepath.Join("crds", o.name+".json.gz")
		if *update {
			write(t, file, want)
			continue
		}
		got, err := copyOf(o.name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what module %s has now: run go generate ./federation/config/schema", file, o.module)
		}
	}
}

func definitionsOf(t *testing.T, module, pattern string) []byte {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding the module %s: %v", module, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d definitions in %s: %v", len(files), module, err)
	}
	var all []json.RawMessage
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(data), "\n---\n") {
			definition, err := yaml.YAMLToJSONStrict([]byte(document))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if bytes.Contains(definition, []byte(`"kind":"CustomResourceDefinition"`)) {
				all = append(all, definition)
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shipped are the kinds of the hub's own that it reads from clusters, and the file with
// which operators install them there.
var shipped = []string{"drains", "networks", "servicebindings"}

const shippedFile = "../../../deploy/kubernetes/crds.yaml"

func TestR86CopiesForClustersAreThoseOfTheHub(t *testing.T) {
	want := "# Kinds of the hub's own that it reads from clusters. Copied from federation/config/schema/crds by\n# make generate.\n"
	for _, kind := range shipped {
		text, err := os.ReadFile(filepath.Join("crds", "isthmus.dev_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		want += "---\n" + string(text)
	}
	if *update {
		if err := os.WriteFile(shippedFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(shippedFile)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the hub validates with (%v): run go generate ./federation/config/schema", shippedFile, err)
	}
}
