package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
)

// kind is one sort of registry.
type kind struct {
	open      func(surroundings, clusterConfig) opener
	openWith  opensWith                // with credentials that were kept; nil: it needs none
	section   func(clusterConfig) bool // whether the config has the kind's own section; nil: it has none
	comesWith string                   // why this version has only the name
}

// kinds are the sorts of registries; a new one is one line here.
func kinds() map[federation.Provider]kind {
	return map[federation.Provider]kind{
		federation.Kubernetes: {open: openKubernetes, openWith: kubernetesWith, section: func(c clusterConfig) bool { return c.Kubernetes != nil }},
		federation.Consul:     {open: openConsul, openWith: consulWith, section: func(c clusterConfig) bool { return c.Consul != nil }},
		federation.Mock:       {open: openMock},
		federation.External:   {comesWith: "is always there, last of all, and made of ServiceEntries: it is not attached"},
		federation.MCP:        {comesWith: "comes with configuration sources over MCP (not in this version)"},
	}
}

func kindOf(p federation.Provider) (kind, error) {
	k, known := kinds()[p]
	switch {
	case !known:
		return kind{}, fmt.Errorf("provider %q is not known; use one of %s", p, strings.Join(usableKinds(), ", "))
	case k.open == nil:
		return kind{}, fmt.Errorf("provider %s %s", p, k.comesWith)
	}
	return k, nil
}

func usableKinds() []string {
	var names []string
	for p, k := range kinds() {
		if k.open != nil {
			names = append(names, string(p))
		}
	}
	return slices.Sorted(slices.Values(names))
}

// sections are the providers whose own section the config has.
func (c clusterConfig) sections() []federation.Provider {
	var found []federation.Provider
	for p, k := range maps.All(kinds()) {
		if k.section != nil && k.section(c) {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return found
}
