package graph_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// updating tells whether the flag -update of federationtest is set.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestContractIsAnswered sends every operation of the contract word for word
// and compares the whole answer with testdata/contract/OPERATION.json.
func TestContractIsAnswered(t *testing.T) {
	variables := map[string]map[string]any{
		"Services": {"filter": map[string]any{"clusterID": "c2", "network": "n2", "hostnameContains": "W", "provider": "KUBERNETES"}},
		"Service":  {"hostname": web.Hostname, "namespace": web.Namespace},
	}
	for name, text := range contract(t) {
		t.Run(name, func(t *testing.T) {
			data, errs := newHub(t).send(text, variables[name])
			if len(errs) > 0 {
				t.Fatal(string(errs))
			}
			compare(t, filepath.Join("testdata", "contract", name+".json"), indented(t, withoutOpaque(data)))
		})
	}
}

func TestContractIsAnsweredInPagesOf500(t *testing.T) {
	h := newHub(t)
	for name, text := range contract(t) {
		if _, errs := h.ask(text, map[string]any{"first": 500, "hostname": web.Hostname, "namespace": web.Namespace}); errs != "" {
			t.Errorf("%s: %s", name, errs)
		}
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if updating() {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the answer differs from %s (run with -update to accept)\n%s", file, got)
	}
}

// withoutOpaque puts a star in place of what clients must not look into.
func withoutOpaque(data json.RawMessage) json.RawMessage {
	return regexp.MustCompile(`"(id|version|endCursor)":"[^"]+"`).ReplaceAll(data, []byte(`"$1":"*"`))
}

func indented(t *testing.T, data json.RawMessage) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}
