package kind

import (
	networking "istio.io/api/networking/v1alpha3"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.EnvoyFilter]{
	kind: federation.Kind{Group: networkingGroup, Name: "EnvoyFilter"},
	proxyLabels: func(s *networking.EnvoyFilter, add func(map[string]string)) {
		add(s.GetWorkloadSelector().GetLabels())
	},
	check: validation.EnvoyFilter,
})
