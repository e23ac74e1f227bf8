package apply

import (
	security "istio.io/api/security/v1beta1"

	"isthmus.dev/isthmus/federation"
)

// NotEnforced is the code of a finding about a policy that restricts traffic
// according to its own words, and that nothing enforces.
const NotEnforced = "NOT_ENFORCED"

// Unenforced says why a policy leaves traffic open that it means to restrict;
// empty: the object means to restrict nothing. A PeerAuthentication that does
// not demand mutual TLS restricts nothing.
func Unenforced(o *federation.Object) string {
	switch spec := o.Spec.(type) {
	case *security.PeerAuthentication:
		if demandsMutualTLS(spec) {
			return "mode STRICT is not enforced: workloads accept plain text as before"
		}
	case *security.AuthorizationPolicy:
		return "authorization policies are not enforced: no request is denied because of this object"
	case *security.RequestAuthentication:
		return "request authentication is not enforced: tokens are not verified, and no request is denied because of this object"
	}
	return ""
}

func demandsMutualTLS(spec *security.PeerAuthentication) bool {
	const strict = security.PeerAuthentication_MutualTLS_STRICT
	if spec.GetMtls().GetMode() == strict {
		return true
	}
	for _, port := range spec.GetPortLevelMtls() {
		if port.GetMode() == strict {
			return true
		}
	}
	return false
}
