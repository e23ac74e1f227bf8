package schema

import "go.yaml.in/yaml/v2"

// YAML writes an object as tools of Kubernetes do. sigs.k8s.io/yaml writes with the same library, but
// reads the object as JSON before, which fails for control characters (ADR 93).
func YAML(object map[string]any) ([]byte, error) { return yaml.Marshal(object) }
