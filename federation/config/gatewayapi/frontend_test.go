package gatewayapi

import (
	"strings"
	"testing"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
)

// TestK56TheGatewaySaysThatClientsAreNotVerified, by the condition of the Gateway API, exactly where
// a mode says so; the Gateway is accepted and listens all the same.
func TestK56TheGatewaySaysThatClientsAreNotVerified(t *testing.T) {
	const (
		strict   = `{validation: {caCertificateRefs: [{group: "", kind: Secret, name: roots}]}}`
		lenient  = `{validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: Secret, name: roots}]}}`
		listener = "  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n"
	)
	for tls, want := range map[string]bool{
		"{frontend: {default: " + strict + "}}":                                                false,
		"{frontend: {default: " + lenient + "}}":                                               true,
		"{frontend: {default: " + strict + ", perPort: [{port: 443, tls: " + lenient + "}]}}":  true,
		"{frontend: {default: {}, perPort: [{port: 443, tls: " + strict + "}]}}":               false,
		"{backend: {clientCertificateRef: {name: own}}, frontend: {default: " + strict + "}}":  false,
		"{backend: {clientCertificateRef: {name: own}}, frontend: {default: " + lenient + "}}": true,
		"{frontend: {default: " + lenient + ", perPort: [{port: 8443, tls: " + strict + "}]}}": true,
	} {
		w := newFixture(t)
		w.apply("", strings.TrimSpace(strings.Replace(edge, "  listeners:", "  tls: "+tls+"\n  listeners:", 1)+listener))
		key := federation.GatewayAPI.Gateway.Key("shop", "edge")
		var found []Condition
		for _, c := range translate(w.aggregate.Latest().Read(), key).status.Conditions {
			if c.Type == string(gateway.GatewayConditionInsecureFrontendValidationMode) {
				found = append(found, c)
			}
		}
		if has := len(found) == 1 && found[0].Status && found[0].Reason == string(gateway.GatewayReasonConfigurationChanged); has != want ||
			len(found) > 1 {
			t.Errorf("%s: the conditions are %+v, want one: %t", tls, found, want)
		}
	}
}
