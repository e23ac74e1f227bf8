package config

import (
	"encoding/json"
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// internalVersion is the API version of the kinds that are for the hub alone.
const internalVersion = federation.MeshGroup + "/v1"

// newInternal is an object of such a kind; without a spec if that is nil.
func newInternal(key federation.ObjectKey, spec any) (*Object, error) {
	type metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
	}
	manifest, err := json.Marshal(struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
		Spec       any      `json:"spec,omitempty"`
	}{internalVersion, key.Kind, metadata{key.Name, key.Namespace}, spec})
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", key, err)
	}
	return &Object{Key: key, APIVersion: internalVersion, Manifest: manifest}, nil
}
