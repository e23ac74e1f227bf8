package apply

import (
	"reflect"
	"testing"

	"isthmus.dev/isthmus/federation/config/manifest"
	"isthmus.dev/isthmus/federation/config/schema"
)

// R63: a released manifest is the same again, whatever its values, and has the same places.
func TestR63ReleasedManifestsAreTheSameAgain(t *testing.T) {
	set, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	w, fault := identify(set, read(t, `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: a, labels: {}}
spec:
  configPatches:
  - patch: {value: {whole: 1, text: "\u2028<é>\"", none: null, far: -9223372036854775808, sure: true, list: [], empty: {}}}
`), "shop")
	if fault != nil {
		t.Fatal(fault)
	}
	for _, fraction := range []bool{false, true} {
		if fraction {
			w.document.Value["spec"].(map[string]any)["fraction"] = 2.0
		}
		r := w.released()
		if r.value != nil || r.document.Value != nil || (r.compact == nil) != fraction {
			t.Fatalf("%+v is not released", r)
		}
		if fraction {
			continue // the document does not have it
		}
		again := r.again()
		if !reflect.DeepEqual(again.value, w.value) {
			t.Errorf("got %v, want %v", again.value, w.value)
		}
		errs := again.placed([]Error{again.fault("A", "spec.configPatches[0].patch.value.sure", "wrong")})
		if at := errs[0].Place; at.Line != 6 || at.Column != 91 {
			t.Errorf("the place is %+v", at)
		}
	}
}

func read(t *testing.T, text string) manifest.Document {
	t.Helper()
	documents, problems := manifest.Parse("f.yaml", []byte(text), manifest.Limits{})
	if len(problems) > 0 || len(documents) != 1 {
		t.Fatal(documents, problems)
	}
	return documents[0]
}
