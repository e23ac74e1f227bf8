package federation

import (
	"encoding/json"
	"fmt"
)

// ExtensionProvider is a server that proxies ask or report to.
type ExtensionProvider struct {
	Name string
	// Config is all of it in JSON, the name included: an item of extensionProviders in Istio's
	// mesh configuration.
	Config json.RawMessage
}

// UnmarshalJSON reads an item of extensionProviders.
func (p *ExtensionProvider) UnmarshalJSON(data []byte) error {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return fmt.Errorf("reading an extension provider: %w", err)
	}
	p.Name, p.Config = named.Name, append(p.Config[:0:0], data...)
	return nil
}

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
