package docs

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy"
	networking "istio.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// ruleKinds are kinds that are compiled for proxies, by their pages.
func ruleKinds() map[string]proto.Message {
	return map[string]proto.Message{"destinationrule": &networking.DestinationRule{}, "gateway": &networking.Gateway{}}
}

func TestEveryFieldOfARuleIsDocumented(t *testing.T) {
	for name, spec := range ruleKinds() {
		sameSet(t, name, firstColumn(rows(t, read(t, "kinds/"+name+".md"), "field")), fieldsOf(spec))
	}
}

// All that the examples say has an effect.
func TestExamplesOfRulesAreHonoured(t *testing.T) {
	for name := range ruleKinds() {
		examples := blocksOf(read(t, "kinds/"+name+".md"), "yaml")
		if len(examples) == 0 {
			t.Errorf("%s: there is no example", name)
		}
		for _, example := range examples {
			if vain := envoy.NotHonoured(ruleIn(t, example, ruleKinds()[name])); len(vain) > 0 {
				t.Errorf("%v in %s", vain, example)
			}
		}
	}
}

func ruleIn(t *testing.T, example string, rule proto.Message) *federation.Object {
	t.Helper()
	var manifest struct {
		Kind string         `json:"kind"`
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(example), &manifest); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(spec, rule); err != nil {
		t.Errorf("%v in %s", err, example)
	}
	return &federation.Object{Key: federation.ObjectKey{
		Group: "networking.istio.io", Kind: manifest.Kind,
		Namespace: "shop", Name: "n",
	}, Spec: rule}
}
