package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/schema"
)

// YAML writes an object without managed fields. Its numbers stay as they are, also those
// that a float64 cannot hold.
func YAML(of *config.Object) (string, error) {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(of.Manifest))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return "", fmt.Errorf("writing %s as YAML: %w", of.Key, err)
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	numbered(object)
	text, err := schema.YAML(object)
	if err != nil {
		return "", fmt.Errorf("writing %s as YAML: %w", of.Key, err)
	}
	return string(text), nil
}

// numbered has numbers of Go in place of those of JSON, which YAML would quote.
func numbered(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = numbered(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = numbered(inner)
		}
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			return n
		}
		if n, err := value.Float64(); err == nil {
			return n
		}
		return string(value)
	}
	return value
}
