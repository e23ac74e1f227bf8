package gatewayapi

import (
	"fmt"
	"strings"
	"testing"
)

// TestG114OptionsOfTLS: options of Istio say how clients are verified, and by which ciphers. A mode that the hub does not have is
// never replaced by one that verifies nobody, and other options are reported.
func TestG114OptionsOfTLS(t *testing.T) {
	listener := func(protocol, tls string) string {
		return edge + fmt.Sprintf("  - {name: a, port: 443, protocol: %s, tls: %s}\n", protocol, tls)
	}
	mode := func(value string) string {
		return "{certificateRefs: [{name: cert}], options: {gateway.istio.io/tls-terminate-mode: " + value + "}}"
	}
	server := func(protocol, name, tls string) string {
		return "Gateway shop of c1 {hosts:[*],port:{name:" + name + ",number:443,protocol:" + protocol + "},tls:{" + tls + "}}"
	}
	says := func(code, field string) string {
		return code + " Gateway.gateway.networking.k8s.io shop/edge of cluster c1 spec.listeners[0].tls." + field
	}
	lenient := "{frontend: {default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [" + secretRef + "]}}}}"
	for name, test := range map[string]translation{
		"clients are verified": {listener("HTTPS", mode("MUTUAL")), []string{server("HTTPS", "https", "credentialName:cert,mode:MUTUAL")}},
		"those that have a certificate": {
			listener("HTTPS", mode("OPTIONAL_MUTUAL")),
			[]string{server("HTTPS", "https", "credentialName:cert,mode:OPTIONAL_MUTUAL")},
		},
		"no client": {listener("HTTPS", mode("SIMPLE")), []string{server("HTTPS", "https", "credentialName:cert,mode:SIMPLE")}},
		"by identities of the mesh": {
			listener("HTTPS", "{options: {gateway.istio.io/tls-terminate-mode: ISTIO_MUTUAL}}"),
			[]string{server("HTTPS", "https", "mode:ISTIO_MUTUAL")},
		},
		"certificates that are not used": {
			listener("HTTPS", mode("ISTIO_MUTUAL")),
			[]string{server("HTTPS", "https", "mode:ISTIO_MUTUAL"), says("NOT_HONOURED", "certificateRefs")},
		},
		"a mode that nobody has": {listener("HTTPS", mode("mutual")), []string{says("UNSUPPORTED_VALUE", "options[gateway.istio.io/tls-terminate-mode]")}},
		"a mode of Istio alone":  {listener("HTTPS", mode("ISTIO_SIMPLE")), []string{says("UNSUPPORTED_VALUE", "options[gateway.istio.io/tls-terminate-mode]")}},
		"ciphers": {
			listener("HTTPS", `{certificateRefs: [{name: cert}], options: {gateway.istio.io/tls-cipher-suites: "ECDHE-RSA-AES128-GCM-SHA256, AES128-SHA"}}`),
			[]string{server("HTTPS", "https", "cipherSuites:[ECDHE-RSA-AES128-GCM-SHA256,AES128-SHA],credentialName:cert,mode:SIMPLE")},
		},
		"another option": {
			listener("HTTPS", "{certificateRefs: [{name: cert}], options: {example.com/a: b}}"),
			[]string{server("HTTPS", "https", "credentialName:cert,mode:SIMPLE"), says("NOT_HONOURED", "options[example.com/a]")},
		},
		"TLS does not end": {
			listener("TLS", "{mode: Passthrough, options: {gateway.istio.io/tls-terminate-mode: MUTUAL}}"),
			[]string{server("TLS", "tls", "mode:PASSTHROUGH"), says("NOT_HONOURED", "options[gateway.istio.io/tls-terminate-mode]")},
		},
		"stricter than the Gateway": {
			strings.Replace(edge, "  listeners:", "  tls: "+lenient+"\n  listeners:", 1) + "  - {name: a, port: 443, protocol: HTTPS, tls: " + mode("MUTUAL") + "}\n",
			[]string{server("HTTPS", "https", "caCertCredentialName:roots,credentialName:cert,mode:MUTUAL")},
		},
	} {
		t.Run(name, func(t *testing.T) { test.runOf(t, "c1") })
	}
}
