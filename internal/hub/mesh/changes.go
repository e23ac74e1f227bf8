package mesh

import (
	"isthmus.dev/isthmus/federation"
	configkind "isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/federation/config/schema"
	"isthmus.dev/isthmus/internal/metrics"
)

// changes counts changes of objects in force, except those that are for the hubs alone.
type changes struct{ to *metrics.Config }

// countChanges shows the series of each kind from the start.
func countChanges(to *metrics.Config, kinds []schema.Kind) changes {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	to.Kinds(names)
	return changes{to}
}

// Changed is part of config.Meter.
func (c changes) Changed(kind federation.Kind, event string) {
	if !configkind.Internal(kind) {
		c.to.Changed(kind.Name, event)
	}
}
