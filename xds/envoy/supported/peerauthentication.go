package supported

import (
	security "istio.io/api/security/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/xds/envoy/authentication"
	"isthmus.dev/isthmus/xds/envoy/node"
)

var _ = add(row{
	kind: federation.PeerAuthenticationKind, table: &table{fields: []string{"selector.matchLabels", "mtls.mode", "portLevelMtls"}},
	concerns: func(o *federation.Object, f node.Facet, _ *federation.Reader) bool {
		spec, is := o.Spec.(*security.PeerAuthentication)
		return !is || !f.Has(node.Inbound) || authentication.SelectsPeers(spec, f.HasLabels)
	},
})
