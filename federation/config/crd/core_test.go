package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"isthmus.dev/isthmus/federation/config/crd"
	"isthmus.dev/isthmus/federation/config/kind"
)

// TestG51ConfigMapsAreCertificates: of a ConfigMap the hub keeps the certificates of authorities,
// and nothing of one that has none; other kinds are judged by their schemas.
func TestG51ConfigMapsAreCertificates(t *testing.T) {
	of := crd.WithCoreKinds(kind.Schema{Set: kinds(t)})
	configMap := func(data map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": data,
			"metadata": map[string]any{"name": "roots", "namespace": "shop", "labels": map[string]any{"a": "b"}},
		}
	}
	for name, test := range map[string]struct {
		data map[string]any
		want map[string]any
	}{
		"with certificates": {map[string]any{"ca.crt": "PEM", "password": "secret"}, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "roots", "namespace": "shop"},
			"spec": map[string]any{"ca.crt": "PEM"},
		}},
		"without":           {map[string]any{"password": "secret"}, nil},
		"with another type": {map[string]any{"ca.crt": int64(1)}, nil},
		"without data":      {nil, nil},
	} {
		got, problems := of.Admit(configMap(test.data))
		if diff := cmp.Diff(test.want, got.Object); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %v, %s", name, problems, diff)
		}
	}
	_, problems := of.Admit(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "shop"}})
	if len(problems) == 0 {
		t.Error("a Secret is admitted")
	}
}

// TestG59NamespacesAreLabels: of a Namespace the hub keeps the labels alone.
func TestG59NamespacesAreLabels(t *testing.T) {
	of := crd.WithCoreKinds(kind.Schema{Set: kinds(t)})
	for name, test := range map[string]struct{ metadata, want map[string]any }{
		"with labels": {
			map[string]any{
				"name": "shop", "uid": "u", "resourceVersion": "7", "annotations": map[string]any{"secret": "x"},
				"labels": map[string]any{"team": "a"},
			},
			map[string]any{"labels": map[string]any{"team": "a"}},
		},
		"without": {map[string]any{"name": "shop"}, map[string]any{"labels": map[string]any(nil)}},
	} {
		got, problems := of.Admit(map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": test.metadata,
			"status": map[string]any{"phase": "Active"},
		})
		want := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}, "spec": test.want}
		if diff := cmp.Diff(want, got.Object); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %v, %s", name, problems, diff)
		}
	}
}

// TestG59SourcesNameCoreKinds: MeshSettings can name each core kind.
func TestG59SourcesNameCoreKinds(t *testing.T) {
	var names []any
	for _, k := range crd.CoreKinds {
		names = append(names, k.String())
	}
	settings := map[string]any{
		"apiVersion": "isthmus.dev/v1", "kind": "MeshSettings", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"sources": []any{map[string]any{"cluster": "c1", "namespaces": []any{"*"}, "kinds": names}}},
	}
	_, problems := kind.Schema{Set: kinds(t)}.Admit(settings)
	if len(problems) > 0 {
		t.Errorf("the settings are refused: %+v", problems)
	}
}
