package kind

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[security.AuthorizationPolicy]{
	kind:        federation.AuthorizationPolicyKind,
	names:       policyNames[*security.AuthorizationPolicy],
	proxyLabels: policyLabels[*security.AuthorizationPolicy],
	references:  analysis.AuthorizationPolicy,
	check:       validation.AuthorizationPolicy,
	unenforced: func(p *security.AuthorizationPolicy) string {
		if !attachedToNothing(p) {
			return ""
		}
		return "targetRefs name what the hub has no proxies for: no request is denied because of this object; name a Gateway of gateway.networking.k8s.io, or use a selector"
	},
	dryRun:  true,
	columns: []Column{{"ACTION", "spec.action"}},
})
