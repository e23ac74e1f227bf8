package kind

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
)

var _ = add(of[federation.DrainObject]{
	kind:        federation.DrainKind,
	contributes: &federation.DrainsServices,
	references:  analysis.Drain,
	columns: []Column{
		{"CLUSTER", "spec.cluster"}, {"NETWORK", "spec.networkID"}, {"LOCALITY", "spec.locality"}, {"PERCENT", "spec.percent"},
	},
})
