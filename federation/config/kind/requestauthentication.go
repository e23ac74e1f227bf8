package kind

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[security.RequestAuthentication]{
	kind:        federation.Kind{Group: securityGroup, Name: "RequestAuthentication"},
	proxyLabels: selector[*security.RequestAuthentication],
	check:       validation.RequestAuthentication,
	names: func(d Decoded, r *security.RequestAuthentication) []string {
		return []string{WorkloadsName(d.Key.Namespace, r.GetSelector().GetMatchLabels())}
	},
	unenforced: func(r *security.RequestAuthentication) string {
		if r.GetTargetRef() == nil && len(r.GetTargetRefs()) == 0 {
			return ""
		}
		return "targetRefs name what the hub has no proxies for: no token is verified because of this object; use a selector"
	},
})
