package kind

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[security.AuthorizationPolicy]{
	kind: federation.Kind{Group: securityGroup, Name: "AuthorizationPolicy"},
	names: func(d Decoded, p *security.AuthorizationPolicy) []string {
		return []string{WorkloadsName(d.Key.Namespace, p.GetSelector().GetMatchLabels())}
	},
	proxyLabels: selector[*security.AuthorizationPolicy],
	check:       validation.AuthorizationPolicy,
	unenforced: func(p *security.AuthorizationPolicy) string {
		if p.GetTargetRef() == nil && len(p.GetTargetRefs()) == 0 {
			return ""
		}
		return "targetRefs name what the hub has no proxies for: no request is denied because of this object; use a selector"
	},
	dryRun:  true,
	columns: []Column{{"ACTION", "spec.action"}},
})
