package attach

import "maps"

// spec is that of the object of a cluster that is attached.
func (r Request) spec() map[string]any {
	maps.DeleteFunc(r.Section, func(_ string, value any) bool { return value == "" })
	spec := r.place()
	if r.Network != "" {
		spec["network"] = string(r.Network)
	}
	if r.Precedence != nil {
		spec["precedence"] = int64(*r.Precedence)
	}
	if len(r.Aliases) > 0 {
		aliases := make([]any, len(r.Aliases))
		for i, alias := range r.Aliases {
			aliases[i] = alias
		}
		spec["aliases"] = aliases
	}
	return spec
}

// place is the part of it that belongs to the credentials: where the cluster is.
func (r Request) place() map[string]any {
	spec := map[string]any{"provider": string(r.Provider)}
	if len(r.Section) > 0 {
		spec[r.Provider.Section()] = r.Section
	}
	return spec
}
