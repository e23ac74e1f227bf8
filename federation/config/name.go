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
	if o.Key.Kind == "" || o.Key.Name == "" || strings.ContainsFunc(o.Key.Group+o.Key.Kind+o.Key.Namespace+o.Key.Name, unicode.IsControl) {
		return fmt.Errorf("its key %q is incomplete or has control characters", o.Key)
	}
	var m struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(o.Manifest, &m); err != nil {
		return fmt.Errorf("its manifest is no JSON object: %w", err)
	}
	group, _, versioned := strings.Cut(m.APIVersion, "/")
	if !versioned {
		group = ""
	}
	inside := federation.ObjectKey{Group: group, Kind: m.Kind, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, Cluster: o.Key.Cluster}
	if inside != o.Key {
		return fmt.Errorf("its manifest is of another object, %q", inside)
	}
	return nil
}
