package kind

import (
	"encoding/json"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
)

// unused reports the fields of one of the hub's own objects that are not among the
// supported ones.
func unused(d Decoded, supported []string, why string) []federation.Problem {
	var manifest struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(d.Manifest, &manifest); err != nil {
		return nil // reported elsewhere: it cannot be decoded
	}
	var found []federation.Problem
	for _, path := range leaves("", manifest.Spec) {
		if !slices.Contains(supported, path) {
			found = append(found, federation.Problem{Code: federation.CodeNotHonoured, Object: d.Key.Title(), Field: "spec." + path, Message: why})
		}
	}
	return found
}

// leaves are the paths of everything that is not an object, sorted.
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
