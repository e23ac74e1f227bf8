package kind

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[security.PeerAuthentication]{
	kind: federation.PeerAuthenticationKind,
	names: func(d Decoded, p *security.PeerAuthentication) []string {
		names := []string{WorkloadsName(d.Key.Namespace, p.GetSelector().GetMatchLabels())}
		if analysis.HasMode(p, security.PeerAuthentication_MutualTLS_DISABLE) {
			names = append(names, federation.PlainTextName+d.Key.Namespace)
		}
		return names
	},
	proxyLabels: selector[*security.PeerAuthentication],
	check:       validation.PeerAuthentication,
	references:  analysis.PeerAuthentication,
	columns:     []Column{{"MODE", "spec.mtls.mode"}},
})
