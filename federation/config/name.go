package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"isthmus.dev/isthmus/federation"
)

// CheckName tells what is wrong when the manifest is not of the object's key: a
// store gives and takes no such object.
func (o *Object) CheckName() error {
	var m struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(o.Manifest, &m); err != nil {
		return fmt.Errorf("its manifest is not a JSON object: %w", err)
	}
	return o.checkName(m.APIVersion, m.Kind, m.Metadata.Namespace, m.Metadata.Name)
}

// checkNameOf is CheckName for an object whose manifest was written from this value.
func (o *Object) checkNameOf(value map[string]any) error {
	text := func(of map[string]any, name string) string { s, _ := of[name].(string); return s }
	metadata, _ := value["metadata"].(map[string]any)
	return o.checkName(text(value, "apiVersion"), text(value, "kind"), text(metadata, "namespace"), text(metadata, "name"))
}

func (o *Object) checkName(apiVersion, kind, namespace, name string) error {
	if o.Key.Kind == "" || o.Key.Name == "" || strings.ContainsFunc(o.Key.Group+o.Key.Kind+o.Key.Namespace+o.Key.Name, unicode.IsControl) {
		return fmt.Errorf("its key %q is incomplete or has control characters", o.Key)
	}
	group, _, versioned := strings.Cut(apiVersion, "/")
	if !versioned {
		group = ""
	}
	inside := federation.ObjectKey{Group: group, Kind: kind, Namespace: namespace, Name: name, Cluster: o.Key.Cluster}
	if inside != o.Key {
		return fmt.Errorf("its manifest is of another object, %q", inside)
	}
	return nil
}
