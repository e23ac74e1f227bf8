package config

import (
	"encoding/json"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// actedOn are the fields of the hub's own kinds on which it acts; of a kind that
// is not here it acts on none.
func actedOn(kind federation.Kind) (fields []string, why string) {
	switch kind {
	case federation.MeshSettingsKind:
		return []string{"rootNamespace", "trustDomain", "outboundTrafficPolicy.mode", "pathNormalization.normalization", "gatewayNamespaces", "clusterLocalHosts", "clusterLocalExceptions", "localityLoadBalancing.enabled", "localityLoadBalancing.failover"}, "this setting has no effect yet"
	case federation.NetworkKind:
		return []string{"cidrs", "clusters", "gateways"}, "this field has no effect yet"
	}
	return nil, "the object is stored and has no effect yet"
}

// unused tells which fields of one of the hub's own objects have no effect.
func unused(o *Object) []federation.Problem {
	var manifest struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(o.Manifest, &manifest); err != nil {
		return nil // said elsewhere: it cannot be decoded
	}
	fields, why := actedOn(o.Key.Of())
	var found []federation.Problem
	for _, path := range leaves("", manifest.Spec) {
		if !slices.Contains(fields, path) {
			found = append(found, federation.Problem{Code: codeNotHonoured, Object: title(o.Key), Field: "spec." + path, Message: why})
		}
	}
	return found
}

// leaves are the paths of everything that is no object, sorted.
func leaves(at string, value map[string]any) []string {
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(value)) {
		if inner, ok := value[key].(map[string]any); ok {
			paths = append(paths, leaves(at+key+".", inner)...)
			continue
		}
		paths = append(paths, at+key)
	}
	return paths
}
