package sources

import (
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"isthmus.dev/isthmus/federation"
	configkind "isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/mcp"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/federation/config/writeback"
)

// TestU43KindsOfSourcesAreRows: each kind opens sources of its settings, in order of precedence.
func TestU43KindsOfSourcesAreRows(t *testing.T) {
	set, err := schema.Load(configkind.Expressions)
	if err != nil {
		t.Fatal(err)
	}
	dir, snapshots := t.TempDir(), federation.NewAggregate(nil)
	hub := Hub{
		ID: "hub", Schemas: set, Snapshots: snapshots, Status: writeback.New(writeback.Options{Snapshots: snapshots, Logger: slog.Default()}),
		Kept: func(source string) string { return filepath.Join(dir, source) }, Logger: slog.Default(),
	}
	all := Settings{Servers: []mcp.Server{{Name: "east"}, {Name: "west"}}, Dir: dir}
	for name, c := range map[string]struct {
		settings Settings
		want     []string
	}{
		"everything": {all, []string{"MCP east", "MCP west", "FILE", "CRD", "INGRESS", "GATEWAY_API"}},
		"nothing":    {Settings{}, []string{"CRD", "INGRESS", "GATEWAY_API"}},
	} {
		var names []string
		for _, k := range All() {
			opened := k.Open(hub, c.settings)
			for _, s := range opened.Sources {
				names = append(names, s.Name)
			}
			if given := k.Given(c.settings); given != (len(opened.Sources) > 0) {
				t.Errorf("%s: %s is given: %t, and opens %d sources", name, k.Name, given, len(opened.Sources))
			}
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%s: the sources are %q, want %q", name, names, c.want)
		}
	}
}

// TestU43WhatIsListedCanBeTurnedOff: a listed kind with a setting has nothing to read once it is off.
func TestU43WhatIsListedCanBeTurnedOff(t *testing.T) {
	var names []string
	for _, k := range Listed() {
		names = append(names, k.Name)
		s := Settings{Servers: []mcp.Server{{Name: "east"}}, Dir: "/etc/isthmus"}
		k.Off(&s)
		if k.Setting != "" && k.Given(s) || k.Setting == "" && !s.NoCustomResources {
			t.Errorf("%s is off, and the settings are %+v", k.Name, s)
		}
	}
	if want := []string{"MCP", "FILE", "CRD"}; !slices.Equal(names, want) {
		t.Errorf("the config file may list %q, want %q", names, want)
	}
}
