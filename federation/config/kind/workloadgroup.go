package kind

import (
	networking "istio.io/api/networking/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[networking.WorkloadGroup]{
	kind:  federation.WorkloadGroupKind,
	check: validation.WorkloadGroup,
})
