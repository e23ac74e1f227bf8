package crd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// TestK78HealthOfTheStatusIsKept: a change of the condition in which istiod stores what an agent reports is a change of the
// WorkloadEntry; the rest of the status is not, and neither is that of other kinds.
func TestK78HealthOfTheStatusIsKept(t *testing.T) {
	set, err := schema.Load(kind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	s := &Source{o: Options{Schema: kind.Schema{Set: set}}}
	read := func(of federation.Kind, annotation, spec, status string) string {
		t.Helper()
		var in map[string]any
		text := "apiVersion: networking.istio.io/v1\nkind: " + of.Name + "\nmetadata: {name: a, namespace: shop, annotations: {" + annotation + "}}\nspec: " + spec + "\nstatus: " + status
		if err := yaml.Unmarshal([]byte(text), &in); err != nil {
			t.Fatal(err)
		}
		object, _, problems := s.admit(schema.Kind{Kind: of, Storage: "v1"}, listwatch.Key{Namespace: "shop", Name: "a"}, &unstructured.Unstructured{Object: in})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return string(object.Manifest)
	}
	const reports = `proxy.istio.io/health-checks-enabled: "true"`
	entry := func(status string) string {
		return read(federation.WorkloadEntryKind, reports, "{address: 10.0.0.1}", status)
	}
	well := entry(`{conditions: [{type: Healthy, status: "True", lastProbeTime: "2026-01-01T00:00:00Z"}]}`)
	again := entry(`{observedGeneration: 2, conditions: [{type: Reconciled, status: "True"}, {type: Healthy, status: "True", lastProbeTime: "2026-01-01T00:00:09Z"}]}`)
	ill := entry(`{conditions: [{type: Healthy, status: "False", message: "connection\0 refused"}]}`)
	if well != again || well == ill {
		t.Errorf("kept are %s, %s and %s", well, again, ill)
	}
	if !strings.Contains(ill, "connection  refused") || strings.Contains(well, "lastProbeTime") {
		t.Errorf("kept are %s and %s", well, ill)
	}
	for _, status := range []string{"", "{}", "{conditions: 1}", "{conditions: [{type: Reconciled}]}", "1"} {
		if kept := entry(status); !strings.Contains(kept, `"status":{}`) {
			t.Errorf("of the status %s, %s is kept", status, kept)
		}
	}
	rule := federation.Kind{Group: "networking.istio.io", Name: "DestinationRule"}
	const condition = `{conditions: [{type: Healthy, status: "True"}]}`
	if kept := read(rule, reports, "{host: web}", condition); strings.Contains(kept, "status") {
		t.Errorf("of a DestinationRule %s is kept", kept)
	}
	for _, annotation := range []string{"", `proxy.istio.io/health-checks-enabled: "no"`} {
		if kept := read(federation.WorkloadEntryKind, annotation, "{address: 10.0.0.1}", condition); strings.Contains(kept, "status") {
			t.Errorf("of a WorkloadEntry with the annotations {%s} %s is kept", annotation, kept)
		}
	}
}
