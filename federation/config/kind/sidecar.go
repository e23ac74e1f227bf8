package kind

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.Sidecar]{
	kind: federation.SidecarKind,
	proxyLabels: func(s *networking.Sidecar, add func(map[string]string)) {
		add(s.GetWorkloadSelector().GetLabels())
	},
	check: validation.Sidecar,
	references: func(r *analysis.References, s *networking.Sidecar) {
		if proxy := s.GetOutboundTrafficPolicy().GetEgressProxy(); proxy != nil {
			r.Destination("spec.outboundTrafficPolicy.egressProxy", proxy)
		}
	},
})
