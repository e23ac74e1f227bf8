package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"isthmus.dev/isthmus/federation/config/manifest"
)

const gateway = `# The entry.
apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: entry
  labels: {app.kubernetes.io/name: shop, "8": eight}
spec:
  selector:
    istio: ingressgateway
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts:
    - "*.example.com"
  - port:
      number: 80
    hosts: ["${HOST}.example.com"]
    on the way: 1.5
    empty:
`

func TestParseGivesJSONValuesAndTheirPlaces(t *testing.T) {
	documents, problems := manifest.Parse("gw.yaml", []byte(gateway), manifest.Limits{})
	if len(problems) > 0 || len(documents) != 1 {
		t.Fatalf("%d documents, problems %v", len(documents), problems)
	}
	d := documents[0]
	servers := d.Value["spec"].(map[string]any)["servers"].([]any)
	want := map[string]any{
		"port": map[string]any{"number": int64(80)}, "hosts": []any{"${HOST}.example.com"}, "on the way": 1.5, "empty": nil,
	}
	if diff := cmp.Diff(want, servers[1]); diff != "" {
		t.Errorf("second server (-want +got):\n%s", diff)
	}
	if d.Line != 2 || d.Index != 0 || d.Item != -1 {
		t.Errorf("the document is %d.%d in line %d, want 0.-1 in line 2", d.Index, d.Item, d.Line)
	}
	for path, want := range map[string]string{
		"":                                        "2:1",
		"metadata.labels":                         "6:3",
		"metadata.labels[8]":                      "6:42",
		"spec.servers[0].port.number":             "11:12",
		".spec.servers[1].port.number":            "15:7",
		"spec.servers[1].hosts[0]":                "16:13",
		"spec.servers[1].hosts[7]":                "16:5",
		"spec.servers[0].tls.mode":                "11:5",
		"spec.unknown":                            "7:1",
		"metadata.labels[app.kubernetes.io/name]": "6:12",
	} {
		line, column := d.Position(path)
		if got := fmt.Sprintf("%d:%d", line, column); got != want {
			t.Errorf("%q is at %s, want %s", path, got, want)
		}
	}
}

func TestParseJSON(t *testing.T) {
	text := "{\"kind\":\"A\",\n \"n\": [1, 2.5, 1e3, true, null, \"\\ud83d\\ude00 é\", {\"x\": -9}]}\n{\"kind\":\"B\"}"
	documents, problems := manifest.Parse("a.json", []byte(text), manifest.Limits{})
	if len(problems) > 0 || len(documents) != 2 {
		t.Fatalf("%d documents, problems %v", len(documents), problems)
	}
	want := map[string]any{"kind": "A", "n": []any{int64(1), 2.5, 1000.0, true, nil, "😀 é", map[string]any{"x": int64(-9)}}}
	if diff := cmp.Diff(want, documents[0].Value); diff != "" {
		t.Errorf("first object (-want +got):\n%s", diff)
	}
	if line, column := documents[0].Position("n[6].x"); line != 2 || column != 52 {
		t.Errorf("n[6].x is at %d:%d, want 2:52", line, column)
	}
	if documents[1].Index != 1 || documents[1].Line != 3 {
		t.Errorf("second object is number %d in line %d, want 1 in line 3", documents[1].Index, documents[1].Line)
	}
}

func TestParseTakesListsApart(t *testing.T) {
	text := `apiVersion: v1
kind: List
items:
- kind: A
- kind: ServiceExportList
  items:
  - {kind: B, spec: {port: 1}}
- 5
`
	documents, problems := manifest.Parse("l.yaml", []byte("---\n"+text+"---\nkind: C\n"), manifest.Limits{})
	var got []string
	for _, d := range documents {
		got = append(got, fmt.Sprintf("%s %d.%d line %d", d.Value["kind"], d.Index, d.Item, d.Line))
	}
	want := []string{"A 0.0 line 5", "B 0.0 line 8", "C 1.-1 line 11"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if line, column := documents[1].Position("spec.port"); line != 8 || column != 22 {
		t.Errorf("spec.port of B is at %d:%d, want 8:22", line, column)
	}
	wantProblems(t, problems, "9:3 NOT_AN_OBJECT items[2]")
}

func wantProblems(t *testing.T, problems []manifest.Problem, want ...string) {
	t.Helper()
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Code, p.Field)))
		if p.Message == "" || p.File == "" {
			t.Errorf("problem without message or file: %+v", p)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("problems (-want +got):\n%s\n%v", diff, problems)
	}
}
