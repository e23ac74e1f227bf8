package federation

import "slices"

// VisibleFrom reports whether what the namespace own exports with exportTo is visible from
// another one; from is empty for callers of every namespace.
func VisibleFrom(exportTo []string, own, from string) bool {
	return len(exportTo) == 0 || slices.ContainsFunc(exportTo, func(to string) bool {
		return to == "*" || from != "" && (to == from || to == "." && own == from)
	})
}

// Everywhere reports whether what is exported with exportTo is visible from every namespace.
func Everywhere(exportTo []string) bool { return len(exportTo) == 0 || slices.Contains(exportTo, "*") }

// ExportDefaults are the namespaces to which objects are exported that do not say so themselves; none: all.
type ExportDefaults struct{ Services, VirtualServices, DestinationRules []string }

// ExportDefaults are those of the settings.
func (m *MeshSettings) ExportDefaults() ExportDefaults {
	if m == nil {
		return ExportDefaults{}
	}
	return ExportDefaults{m.DefaultServiceExportTo, m.DefaultVirtualServiceExportTo, m.DefaultDestinationRuleExportTo}
}

// ExportTo are the namespaces to which an object is exported that says own of it; none: all.
func ExportTo(own, byDefault []string) []string {
	if len(own) > 0 {
		return own
	}
	return byDefault
}

// mesh are the settings in the draft, and before it those of the snapshot that it follows.
func (x *objectsTxn) mesh() *MeshSettings { return meshOf(x.byKey.Get(MeshSettingsKey.SortKey())) }

func (x *objectsTxn) meshBefore() *MeshSettings {
	return meshOf(x.before.byKey.Get(MeshSettingsKey.SortKey()))
}

// noteMesh notes that the settings of the mesh changed. Services that do not say where they
// are visible follow them.
func (m *merging) noteMesh() {
	before, now := m.objects.meshBefore().ExportDefaults().Services, m.objects.mesh().ExportDefaults().Services
	if slices.Equal(visibility(before), visibility(now)) {
		return
	}
	m.services.Walk(func(_ string, svc *Service) bool {
		for _, shard := range svc.Shards.All() {
			if len(shard.ExportTo) == 0 {
				m.contributions.dirty[svc.Key] = true
				break
			}
		}
		return false
	})
}

// visibility is exportTo as a merged service has it: everywhere is nil.
func visibility(exportTo []string) []string {
	if Everywhere(exportTo) {
		return nil
	}
	return normalExportTo(exportTo)
}
