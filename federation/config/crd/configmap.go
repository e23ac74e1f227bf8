package crd

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
)

// ConfigMaps is the kind of ConfigMaps, whose schema WithConfigMaps has.
var ConfigMaps = schema.Kind{
	Kind: federation.ConfigMapKind, Plural: "configmaps", Singular: "configmap", Namespaced: true, Versions: []string{"v1"}, Storage: "v1",
}

// authoritiesKey is where ConfigMaps have certificates of authorities.
const authoritiesKey = "ca.crt"

// WithConfigMaps admits ConfigMaps beside what the schema admits. Of a ConfigMap it keeps the
// certificates of authorities; one without any is of no use.
func WithConfigMaps(of Schema) Schema { return configMaps{of} }

type configMaps struct{ Schema }

// Admit is part of Schema.
func (c configMaps) Admit(wanted, old map[string]any) (map[string]any, []schema.Problem) {
	if wanted["apiVersion"] != ConfigMaps.APIVersion() || wanted["kind"] != ConfigMaps.Name {
		return c.Schema.Admit(wanted, old)
	}
	data, _ := wanted["data"].(map[string]any)
	authorities, _ := data[authoritiesKey].(string)
	if authorities == "" {
		return nil, nil
	}
	from, _ := wanted["metadata"].(map[string]any)
	return map[string]any{
		"apiVersion": wanted["apiVersion"], "kind": wanted["kind"],
		"metadata": map[string]any{"name": from["name"], "namespace": from["namespace"]},
		"spec":     map[string]any{authoritiesKey: authorities},
	}, nil
}

// onlyByName reports whether objects of the kind are read only by sources that name it: a
// cluster has many that are of no use. The hub writes no status into them.
func onlyByName(kind federation.Kind) bool { return kind == federation.ConfigMapKind }
