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
	unenforced: func(*security.RequestAuthentication) string {
		return "request authentication is not enforced: tokens are not verified, and no request is denied because of this object"
	},
})
