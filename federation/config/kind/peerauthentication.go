package kind

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[security.PeerAuthentication]{
	kind:        federation.Kind{Group: securityGroup, Name: "PeerAuthentication"},
	proxyLabels: selector[*security.PeerAuthentication],
	check:       validation.PeerAuthentication,
	unenforced: func(s *security.PeerAuthentication) string {
		if !demandsMutualTLS(s) {
			return "" // it restricts nothing
		}
		return "mode STRICT is not enforced: workloads accept plain text as before"
	},
	columns: []Column{{"MODE", "spec.mtls.mode"}},
})

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
