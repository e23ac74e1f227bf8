package testbed

import (
	"encoding/json"
	"errors"
	"strings"
)

// An object is one manifest with what its path needs.
type object struct {
	version, kind, namespace, name string
	text                           string
}

// documents divides a manifest at lines of three dashes and excludes those
// that hold nothing but comments.
func documents(manifest string) []string {
	var found []string
	for _, text := range strings.Split("\n"+manifest, "\n---") {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") {
				found = append(found, text)
				break
			}
		}
	}
	return found
}

// parseObject reads JSON as a whole and, of block-style YAML, only what names
// the object; the API server reads the rest.
func parseObject(text string) (object, error) {
	o := object{text: text}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if err := json.Unmarshal([]byte(text), &head); err != nil {
			return o, err
		}
		o.version, o.kind = head.APIVersion, head.Kind
		o.name, o.namespace = head.Metadata.Name, head.Metadata.Namespace
	} else {
		o.readYAML()
	}
	if o.version == "" || o.kind == "" || o.name == "" {
		return o, errors.New("apiVersion, kind or metadata.name is missing")
	}
	return o, nil
}

func (o *object) readYAML() {
	section, indent := "", 0
	for line := range strings.Lines(o.text) {
		key, value, found := strings.Cut(strings.TrimRight(line, "\n"), ":")
		trimmed := strings.TrimLeft(key, " ")
		if !found || strings.HasPrefix(trimmed, "#") {
			continue
		}
		depth := len(key) - len(trimmed)
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if depth == 0 {
			section, indent = trimmed, 0
			o.setTop(section, value)
			continue
		}
		if indent == 0 {
			indent = depth
		}
		if section == "metadata" && depth == indent {
			o.setMetadata(trimmed, value)
		}
	}
}

func (o *object) setTop(key, value string) {
	switch key {
	case "apiVersion":
		o.version = value
	case "kind":
		o.kind = value
	case "metadata":
		o.readFlow(value)
	}
}

// readFlow reads metadata that is written as {name: a, namespace: b}.
func (o *object) readFlow(value string) {
	for _, part := range strings.Split(strings.Trim(value, "{}"), ",") {
		key, value, _ := strings.Cut(part, ":")
		o.setMetadata(strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"'`))
	}
}

func (o *object) setMetadata(key, value string) {
	switch key {
	case "name":
		o.name = value
	case "namespace":
		o.namespace = value
	}
}
