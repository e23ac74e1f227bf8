package kind

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
)

var _ = add(of[federation.DrainObject]{
	kind:        federation.DrainKind,
	contributes: &federation.DrainsServices,
	references:  analysis.Drain,
	translate: func(d Decoded, s *federation.DrainObject) Meaning {
		return Meaning{Problems: rampWithoutStart(d, s)}
	},
	columns: []Column{
		{"CLUSTER", "spec.cluster"},
		{"NETWORK", "spec.networkID"},
		{"LOCALITY", "spec.locality"},
		{"PERCENT", "spec.percent"},
		{"NOW", "status.drain.percent"},
	},
})

// rampWithoutStart reports a ramp of an object that does not say when it was created, as one
// of a file.
func rampWithoutStart(d Decoded, s *federation.DrainObject) []federation.Problem {
	if s.Ramp == "" || !s.RampStart.IsZero() || !d.Created.IsZero() {
		return nil
	}
	return []federation.Problem{{
		Code: federation.CodeNotHonoured, Object: d.Key.Title(), Field: "spec.ramp",
		Message: "the object has no creation time, so that percent counts at once: set rampStart",
	}}
}
