package gatewayapi

import (
	"strings"
	"testing"
)

// TestG83CertificatesForBackends: proxies of a Gateway present the Secret that it names; one that
// they may not have, and what is not a Secret, is reported, and listeners go on.
func TestG83CertificatesForBackends(t *testing.T) {
	with := func(ref string) string {
		return strings.Replace(edge, "  listeners:", "  tls: {backend: {clientCertificateRef: "+ref+"}}\n  listeners:", 1) +
			"  - {name: http, port: 80, protocol: HTTP}\n"
	}
	grant := func(kind string) string {
		return "---\napiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant\nmetadata: {name: g, namespace: other}\n" +
			"spec: {from: [{group: gateway.networking.k8s.io, kind: " + kind + ", namespace: shop}], to: [{group: \"\", kind: Secret, name: client}]}\n"
	}
	listens := strings.Replace(server, "Gateway shop", "Gateway shop of c1", 1)
	wrong := func(code string) []string {
		return []string{
			"ClientCertificate shop of c1 edge {}", listens,
			code + " Gateway.gateway.networking.k8s.io shop/edge of cluster c1 spec.tls.backend.clientCertificateRef",
		}
	}
	for name, test := range map[string]translation{
		"of its own namespace": {with("{name: client}"), []string{"ClientCertificate shop of c1 edge {secret:client}", listens}},
		"of another namespace": {
			with("{name: client, namespace: other}") + grant("Gateway"),
			[]string{"ClientCertificate shop of c1 edge {namespace:other,secret:client}", listens},
		},
		"without a grant":             {with("{name: client, namespace: other}"), wrong("REF_NOT_PERMITTED")},
		"with a grant for others":     {with("{name: client, namespace: other}") + grant("HTTPRoute"), wrong("REF_NOT_PERMITTED")},
		"of another kind":             {with("{kind: WrongKind, name: client}"), wrong("INVALID_CLIENT_CERTIFICATE_REF")},
		"of another group":            {with("{group: example.com, kind: Secret, name: client}"), wrong("INVALID_CLIENT_CERTIFICATE_REF")},
		"that no proxy could ask for": {with("{name: client-cacert}"), wrong("INVALID_CLIENT_CERTIFICATE_REF")},
	} {
		t.Run(name, func(t *testing.T) { test.runOf(t, "c1") })
	}
}
