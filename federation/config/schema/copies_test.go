package schema

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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
	{"sigs.k8s.io/gateway-api", "config/crd/experimental/gateway.networking.k8s.io_*.yaml", "gateway-api"},
	{"sigs.k8s.io/mcs-api", "config/crd/*.yaml", "mcs-api"},
}

// TestCopiesAreThoseOfTheModules: the definitions are those that projects publish; those of the Gateway API are of both
// channels (G105).
func TestCopiesAreThoseOfTheModules(t *testing.T) {
	for _, o := range origins {
		definitions := definitionsOf(t, o.module, o.files)
		if o.name == "gateway-api" {
			definitions = ofBothChannels(t, definitions, definitionsOf(t, o.module, "config/crd/standard/*.yaml"))
		}
		want, err := json.Marshal(definitions)
		if err != nil {
			t.Fatal(err)
		}
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

func definitionsOf(t *testing.T, module, pattern string) (all []json.RawMessage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding the module %s: %v", module, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d definitions in %s: %v", len(files), module, err)
	}
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
	return all
}

// ofBothChannels are the definitions of the experimental channel without what they refuse and those of the standard channel
// do not: the hub reads clusters that have either (ADR 240).
func ofBothChannels(t *testing.T, experimental, standard []json.RawMessage) (all []json.RawMessage) {
	t.Helper()
	if len(experimental) != len(standard) {
		t.Fatalf("the experimental channel has %d kinds, the standard one %d", len(experimental), len(standard))
	}
	for i := range experimental {
		var wide, narrow any
		if err := errors.Join(json.Unmarshal(experimental[i], &wide), json.Unmarshal(standard[i], &narrow)); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(widened(wide, narrow))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

const (
	uniqueRules = "Rule name must be unique within the route" // the rule of the experimental channel for a field of both
	byPort      = "sectionName or port must be"               // how rules about parents begin in the experimental channel
	bySection   = "sectionName must be"                       // and in the standard one
)

// widened is a part of a definition without the patterns that the same part of the other one does not have. It has the versions
// that the other one serves.
func widened(part, other any) any {
	switch part := part.(type) {
	case map[string]any:
		also, _ := other.(map[string]any)
		for name, value := range part {
			_, shared := also[name]
			switch {
			case also != nil && !shared && name == "pattern":
				delete(part, name)
				continue
			case shared && name == "served":
				part[name] = also[name]
				continue
			}
			part[name] = widened(value, also[name])
			if list, is := part[name].([]any); is && name == "x-kubernetes-validations" {
				kept := widenedRules(list, also[name])
				if len(kept) > 0 {
					part[name] = kept
				} else {
					delete(part, name)
				}
			}
		}
	case []any:
		also, _ := other.([]any)
		for i, value := range part {
			if len(also) == len(part) {
				part[i] = widened(value, also[i])
			}
		}
	}
	return part
}

// widenedRules are the rules without that about names. Parents may differ as either channel has it.
func widenedRules(rules []any, other any) (all []any) {
	also, _ := other.([]any)
	for _, r := range rules {
		rule := r.(map[string]any)
		message, _ := rule["message"].(string)
		if message == uniqueRules {
			continue
		}
		if rest, is := strings.CutPrefix(message, byPort); is {
			for _, o := range also {
				if o := o.(map[string]any); o["message"] == bySection+rest {
					rule["rule"] = fmt.Sprintf("(%s) || (%s)", o["rule"], rule["rule"])
				}
			}
		}
		all = append(all, rule)
	}
	return all
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
