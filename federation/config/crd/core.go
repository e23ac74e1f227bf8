package crd

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/schema"
)

// CoreKinds are the kinds of Kubernetes itself of which the hub keeps a part. WithCoreKinds has
// their schemas.
var CoreKinds = []schema.Kind{
	{Kind: federation.ConfigMapKind, Plural: "configmaps", Singular: "configmap", Namespaced: true, Versions: []string{"v1"}, Storage: "v1"},
	{Kind: federation.NamespaceKind, Plural: "namespaces", Singular: "namespace", Versions: []string{"v1"}, Storage: "v1"},
}

// keeps is what the hub keeps of an object of each core kind, as its spec; nil: it is of no use.
var keeps = map[federation.Kind]func(object map[string]any) map[string]any{
	federation.ConfigMapKind: authorities,
	federation.NamespaceKind: func(object map[string]any) map[string]any {
		metadata, _ := object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		return map[string]any{"labels": labels}
	},
}

// authoritiesKey is where ConfigMaps have certificates of authorities.
const authoritiesKey = "ca.crt"

// authorities are the certificates of a ConfigMap; one without any is of no use.
func authorities(object map[string]any) map[string]any {
	data, _ := object["data"].(map[string]any)
	found, _ := data[authoritiesKey].(string)
	if found == "" {
		return nil
	}
	return map[string]any{authoritiesKey: found}
}

// WithCoreKinds admits objects of the core kinds beside what the schema admits: certificates of
// authorities in ConfigMaps, and labels of Namespaces.
func WithCoreKinds(of Schema) Schema { return coreKinds{of} }

type coreKinds struct{ Schema }

// Admit is part of Schema.
func (c coreKinds) Admit(wanted map[string]any) (schema.Admitted, []schema.Problem) {
	name, _ := wanted["kind"].(string)
	kept := keeps[federation.Kind{Name: name}]
	if wanted["apiVersion"] != "v1" || kept == nil {
		return c.Schema.Admit(wanted)
	}
	spec := kept(wanted)
	if spec == nil {
		return schema.Admitted{}, nil
	}
	from, _ := wanted["metadata"].(map[string]any)
	metadata := map[string]any{"name": from["name"]}
	if namespace, has := from["namespace"]; has {
		metadata["namespace"] = namespace
	}
	return schema.Admitted{Object: map[string]any{"apiVersion": "v1", "kind": name, "metadata": metadata, "spec": spec}}, nil
}

// onlyByName reports whether objects of the kind are read only by sources that name it: a
// cluster has many that are of no use. The hub writes no status into them.
func onlyByName(kind federation.Kind) bool { return keeps[kind] != nil }
