package apply

import (
	"crypto/rand"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// newUID makes a random UUID (RFC 9562, version 4).
func newUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// metadataOf returns the object's metadata and makes it where it is missing.
func metadataOf(value map[string]any) map[string]any {
	m, ok := value["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		value["metadata"] = m
	}
	return m
}

// defaultNamespace is that of manifests that name none, unless the request says
// otherwise.
const defaultNamespace = "default"

// keyOf is the identity of a manifest of the kind. One of a namespaced kind that
// names no namespace belongs to the given one.
func keyOf(kind schema.Kind, value map[string]any, namespace string) federation.ObjectKey {
	m := metadataOf(value)
	if ns, _ := m["namespace"].(string); kind.Namespaced && ns == "" {
		m["namespace"] = namespace
	}
	ns, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	return federation.ObjectKey{Group: kind.Group, Kind: kind.Name, Namespace: ns, Name: name}
}

// stamp sets what the store records about an object: its UID, since when, and how
// often it changed beside its metadata.
func stamp(now, live map[string]any, uid func() string, at time.Time) {
	m := metadataOf(now)
	delete(m, "resourceVersion")
	if live == nil {
		m["uid"] = uid()
		m["creationTimestamp"] = at.UTC().Format(time.RFC3339)
		m["generation"] = int64(1)
		return
	}
	was := metadataOf(live)
	for _, field := range []string{"uid", "creationTimestamp", "generation"} {
		m[field] = was[field]
	}
	if !sameBesideMetadata(now, live) {
		generation, _ := asInt(was["generation"])
		m["generation"] = generation + 1
	}
}

func asInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

func sameBesideMetadata(a, b map[string]any) bool {
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			if key != "metadata" && key != "status" && !reflect.DeepEqual(a[key], b[key]) {
				return false
			}
		}
	}
	return true
}

// decode reads a stored manifest.
func decode(o *config.Object) (map[string]any, error) {
	if o == nil {
		return nil, nil
	}
	var value map[string]any
	if err := json.Unmarshal(o.Manifest, &value); err != nil {
		return nil, fmt.Errorf("reading %s as it is stored: %w", o.Key, err)
	}
	return value, nil
}

// encode writes a manifest as it is stored.
func encode(key federation.ObjectKey, kind schema.Kind, value map[string]any) (*config.Object, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", key, err)
	}
	return &config.Object{Key: key, APIVersion: kind.APIVersion(), Manifest: text}, nil
}
