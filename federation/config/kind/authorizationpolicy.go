package kind

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[security.AuthorizationPolicy]{
	kind:        federation.Kind{Group: securityGroup, Name: "AuthorizationPolicy"},
	proxyLabels: selector[*security.AuthorizationPolicy],
	check:       validation.AuthorizationPolicy,
	unenforced: func(*security.AuthorizationPolicy) string {
		return "authorization policies are not enforced: no request is denied because of this object"
	},
	dryRun:  true,
	columns: []Column{{"ACTION", "spec.action"}},
})
