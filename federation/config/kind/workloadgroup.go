package kind

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.WorkloadGroup]{
	kind: federation.Kind{Group: networkingGroup, Name: "WorkloadGroup"},
	translate: func(d Decoded, s *networking.WorkloadGroup) Meaning {
		if s.GetProbe() == nil {
			return Meaning{}
		}
		return Meaning{Problems: []federation.Problem{{
			Code: codeNotHonoured, Object: d.Key.Title(), Field: "spec.probe", Message: "the hub sends no probes to workloads that register themselves; the field has no effect",
		}}}
	},
	check: validation.WorkloadGroup,
})
