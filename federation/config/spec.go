package config

import (
	"encoding/json"
	"fmt"

	"isthmus.dev/isthmus/federation"
)

// DecodeSpec reads the spec of an object of that kind into the kind's own Go
// type.
func DecodeSpec(kind federation.Kind, raw json.RawMessage) (any, error) {
	spec := newSpec(kind)
	if spec == nil {
		return nil, fmt.Errorf("kind %s is unknown", kind)
	}
	if err := decodeSpec(raw, spec); err != nil {
		return nil, fmt.Errorf("its spec cannot be read: %w", err)
	}
	return spec, nil
}
