package schema

import (
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// itemKeys are the members by which the items of a list are known; nil: by their place.
func itemKeys(s *spec.Schema) []string {
	if kind, _ := s.Extensions.GetString("x-kubernetes-list-type"); kind != "map" {
		return nil
	}
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	return slices.Sorted(slices.Values(keys))
}

// hasPlainKeys reports whether each item of a list can be told from the others.
func (l *level) hasPlainKeys(list []any) bool {
	if l.keys == nil {
		return true
	}
	seen := make(map[string]bool, len(list))
	for _, item := range list {
		name, ok := l.keyOf(item)
		if !ok || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(list) > 0
}

// keyOf is the key of an item as managedFields write it. It reports false for one that has not
// all members of the key as texts or whole numbers.
func (l *level) keyOf(item any) (string, bool) {
	object, _ := item.(map[string]any)
	key := make(map[string]any, len(l.keys))
	for _, name := range l.keys {
		switch value := object[name].(type) {
		case string:
			if !isPlainText(value) {
				return "", false
			}
			key[name] = value
		case int64:
			key[name] = value
		default:
			return "", false
		}
	}
	text, err := appendObject(nil, key)
	return string(text), err == nil
}
