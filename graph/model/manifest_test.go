package model_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/graph/model"
)

// TestYAMLIsThatOfKubernetes: what kubectl would write, without managed fields, but for
// numbers that a float64 cannot hold.
func TestYAMLIsThatOfKubernetes(t *testing.T) {
	const manifest = `{"apiVersion":"v1","metadata":{"name":"a","annotations":{"b":"yes","a10":"1","a9":"2026-01-01","t":"line\nline\n","e":""}},
		"spec":{"n":1,"f":1.5,"e":1e3,"big":1e21,"neg":-7,"no":null,"y":true,"none":[],"of":[{"k":"v"},"~","0x1f",[1,2]]}}`
	want, err := yaml.JSONToYAML([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	for _, managed := range []string{"", `"managedFields":[{"manager":"x"}],`} {
		given := manifest[:len(`{"apiVersion":"v1","metadata":{`)] + managed + manifest[len(`{"apiVersion":"v1","metadata":{`):]
		if got, err := model.YAML(&config.Object{Manifest: []byte(given)}); err != nil || got != string(want) {
			t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
		}
	}
	for number, want := range map[string]string{
		"9007199254740993":     "x: 9007199254740993\n",
		"18446744073709551615": "x: 18446744073709551615\n",
	} {
		if got, err := model.YAML(&config.Object{Manifest: []byte(`{"x":` + number + `}`)}); err != nil || got != want {
			t.Errorf("%s is written as %s %v", number, got, err)
		}
	}
}
