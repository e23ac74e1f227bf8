package docs

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

func TestEveryFieldOfADestinationRuleIsDocumented(t *testing.T) {
	page := read(t, "kinds/destinationrule.md")
	sameSet(t, "destinationrule", firstColumn(rows(t, page, "field")), fieldsOf(&networking.DestinationRule{}))
}

// All that the examples say has an effect.
func TestExamplesOfDestinationRulesAreHonoured(t *testing.T) {
	examples := blocksOf(read(t, "kinds/destinationrule.md"), "yaml")
	if len(examples) == 0 {
		t.Error("there is no example")
	}
	for _, example := range examples {
		var manifest struct {
			Kind string         `json:"kind"`
			Spec map[string]any `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(example), &manifest); err != nil {
			t.Fatal(err)
		}
		spec, err := yaml.Marshal(manifest.Spec)
		if err != nil {
			t.Fatal(err)
		}
		json, err := yaml.YAMLToJSON(spec)
		if err != nil {
			t.Fatal(err)
		}
		rule := &networking.DestinationRule{}
		if err := protojson.Unmarshal(json, rule); err != nil {
			t.Errorf("%v in %s", err, example)
		}
		o := &federation.Object{Key: federation.ObjectKey{Group: "networking.istio.io", Kind: manifest.Kind, Namespace: "shop", Name: "n"}, Spec: rule}
		if vain := envoy.NotHonoured(o); len(vain) > 0 {
			t.Errorf("%v in %s", vain, example)
		}
	}
}
