package validation

// DefaultExportTo checks where objects are visible that do not say so themselves: a field of
// MeshSettings.
func DefaultExportTo(field string, list []string) []Problem {
	return exportToOfService("", spec.field(field), list)
}
