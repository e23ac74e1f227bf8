package federation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ExtensionProvider is a server that proxies ask or report to.
type ExtensionProvider struct {
	Name  string
	types []string // its fields
	// Config is all of it in JSON, the name included: an item of extensionProviders in Istio's
	// mesh configuration.
	Config json.RawMessage
}

// UnmarshalJSON reads an item of extensionProviders.
func (p *ExtensionProvider) UnmarshalJSON(data []byte) error {
	var named struct {
		Name string `json:"name"`
	}
	var fields map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, &named), json.Unmarshal(data, &fields)); err != nil {
		return fmt.Errorf("reading an extension provider: %w", err)
	}
	p.types = slices.Sorted(maps.Keys(fields))
	p.Name, p.Config = named.Name, append(p.Config[:0:0], data...)
	return nil
}

// Has reports whether the provider is of the type, such as zipkin.
func (p ExtensionProvider) Has(of string) bool { return slices.Contains(p.types, of) }

// MarshalJSON writes what was read.
func (p ExtensionProvider) MarshalJSON() ([]byte, error) { return p.Config, nil }

// ExtensionProvider is the provider of that name.
func (m *MeshSettings) ExtensionProvider(name string) (ExtensionProvider, bool) {
	if m != nil {
		for _, p := range m.ExtensionProviders {
			if p.Name == name {
				return p, true
			}
		}
	}
	return ExtensionProvider{}, false
}

// EnvoyProvider is the provider that exists without a declaration: it logs to the standard
// output of proxies.
const EnvoyProvider = "envoy"

// Logs are the providers of access logs for workloads for which no object names others.
func (m *MeshSettings) Logs() []string {
	if m == nil {
		return nil
	}
	return m.DefaultProviders.AccessLogging
}

// Traces are the providers of traces for workloads for which no object names others; the first
// counts.
func (m *MeshSettings) Traces() []string {
	if m == nil {
		return nil
	}
	return m.DefaultProviders.Tracing
}
