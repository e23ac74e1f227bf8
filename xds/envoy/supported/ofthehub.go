package supported

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/kind"
)

// The hub's own kinds, and those of multi-cluster services. What reads their objects reports what
// has no effect.
var (
	_ = add(row{kind: federation.MeshSettingsKind, table: &table{
		fields: kind.MeshSettingsFields, hub: kind.MeshSettingsOfSources,
	}})
	_ = add(row{kind: federation.NetworkKind, selects: true, table: &table{fields: kind.NetworkFields}})
	// Each kind of registry has a section. internal/hub/clusters tries each field that the schema has.
	_ = add(row{kind: federation.ClusterKind, selects: true, table: &table{hubAll: true}})
	_ = add(row{kind: federation.ServiceBindingKind, table: &table{fields: []string{"hostname", "services", "ports", "exportTo"}}})
	_ = add(row{kind: federation.DrainKind, table: &table{
		fields: []string{"cluster", "networkID", "locality", "percent", "ramp", "rampFrom", "minRemaining", "minRemainingPercent", "force"},
		hub:    []string{"rampStart"},
	}})
	_ = add(row{kind: federation.ServiceExportKind, table: &table{refused: map[string]string{
		"exportedLabels":      kind.NotExported,
		"exportedAnnotations": kind.NotExported,
	}}})
	_ = add(row{
		kind: federation.ServiceImportKind,
		idle: "the hub derives imports from the ServiceExports of clusters: every proxy knows the names of exported services",
	})
)
