package kind

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[security.RequestAuthentication]{
	kind:        federation.RequestAuthenticationKind,
	names:       policyNames[*security.RequestAuthentication],
	proxyLabels: policyLabels[*security.RequestAuthentication],
	check:       validation.RequestAuthentication,
	unenforced: func(r *security.RequestAuthentication) string {
		if !attachedToNothing(r) {
			return ""
		}
		return "targetRefs name what the hub has no proxies for: no token is verified because of this object; name a Gateway of gateway.networking.k8s.io, or use a selector"
	},
})
