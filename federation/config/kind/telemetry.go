package kind

import (
	telemetry "istio.io/api/telemetry/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[telemetry.Telemetry]{
	kind:        federation.TelemetryKind,
	proxyLabels: policyLabels[*telemetry.Telemetry],
	references:  analysis.Telemetry,
	check:       validation.Telemetry,
})
