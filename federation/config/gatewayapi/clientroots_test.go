package gatewayapi

import (
	"fmt"
	"strings"
	"testing"
)

// clientRoots is a Gateway whose listener at port 443 verifies clients by the references.
func clientRoots(references string) string {
	return strings.Replace(edge, "  listeners:", "  tls: {frontend: {default: {validation: {caCertificateRefs: ["+
		references+"]}}}}\n  listeners:", 1) +
		"  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n"
}

// verifies is the server of that listener.
func verifies(by string) string {
	return "Gateway shop of c1 {hosts:[*],port:{name:https,number:443,protocol:HTTPS},tls:{" + by + "mode:MUTUAL}}"
}

const (
	mapRef    = `{group: "", kind: ConfigMap, name: roots}`
	secretRef = `{group: "", kind: Secret, name: roots}`
	foreign   = `{group: "", kind: ConfigMap, name: roots, namespace: other}`
	grant     = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: ReferenceGrant\nmetadata: {name: g, namespace: other}\n" +
		"spec: {from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: shop}], to: [{group: \"\", kind: ConfigMap, name: roots}]}\n"
)

// TestG75AuthoritiesOfClientsAreInConfigMaps, one or several, of the Gateway's namespace or of one
// that permits it. A reference that is wrong does not count, and says why; without any authority
// nothing listens.
func TestG75AuthoritiesOfClientsAreInConfigMaps(t *testing.T) {
	roots, others := authority(t), authority(t)
	inline := func(all string) string {
		return verifies("caCertificates:" + strings.ReplaceAll(all, "\n", `\n`) + ",credentialName:cert,")
	}
	wrong := func(code, field string) string {
		return code + " Gateway.gateway.networking.k8s.io shop/edge of cluster c1 spec.tls.frontend.default.validation.caCertificateRefs" + field
	}
	abroad := strings.ReplaceAll(configMap("roots", roots), "namespace: shop", "namespace: other")
	for name, test := range map[string]translation{
		"a ConfigMap": {clientRoots(mapRef) + configMap("roots", "of tests\n"+roots), []string{inline(roots)}},
		"several": {clientRoots(mapRef+`, {group: "", kind: ConfigMap, name: others}`) + configMap("roots", roots) + configMap("others",
			others), []string{inline(roots + others)}},
		"a Secret":  {clientRoots(secretRef), []string{verifies("caCertCredentialName:roots,credentialName:cert,")}},
		"not there": {clientRoots(mapRef), []string{wrong("NO_VALID_CA_CERTIFICATE", ""), wrong("INVALID_CA_CERTIFICATE_REF", "[0]")}},
		"no certificate": {clientRoots(mapRef) + configMap("roots", "none"), []string{
			wrong("NO_VALID_CA_CERTIFICATE", ""),
			wrong("INVALID_CA_CERTIFICATE_REF", "[0]"),
		}},
		"too many certificates": {
			clientRoots(mapRef) + configMap("roots", strings.Repeat(roots, maxAuthorities/len(roots)+1)),
			[]string{wrong("NO_VALID_CA_CERTIFICATE", ""), wrong("INVALID_CA_CERTIFICATE_REF", "[0]")},
		},
		"another kind": {
			clientRoots(`{group: "", kind: Service, name: web}`), []string{
				wrong("NO_VALID_CA_CERTIFICATE", ""),
				wrong("INVALID_CA_CERTIFICATE_KIND", "[0]"),
			},
		},
		"one of three is right": {
			clientRoots(`{group: "", kind: ConfigMap, name: none}, `+secretRef+", "+mapRef) + configMap("roots", roots),
			[]string{inline(roots), wrong("INVALID_CA_CERTIFICATE_REF", "[0]"), wrong("INVALID_CA_CERTIFICATE_REF", "[1]")},
		},
		"another namespace": {
			clientRoots(foreign) + abroad, []string{wrong("NO_VALID_CA_CERTIFICATE", ""), wrong("REF_NOT_PERMITTED", "[0]")},
		},
		"another namespace that permits it": {clientRoots(foreign) + abroad + grant, []string{inline(roots)}},
	} {
		t.Run(name, func(t *testing.T) { test.runOf(t, "c1") })
	}
}

// TestG75ReferencesAreThoseOfTheGateway: the listeners of a ListenerSet of another namespace
// verify clients by what the Gateway names in its own.
func TestG75ReferencesAreThoseOfTheGateway(t *testing.T) {
	roots := authority(t)
	set := "---\napiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: more, namespace: other}\n" +
		"spec: {parentRef: {name: edge, namespace: shop}, listeners: [{name: b, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}]}\n"
	in := strings.Replace(clientRoots(mapRef), "  tls:", "  allowedListeners: {namespaces: {from: All}}\n  tls:", 1) +
		set + configMap("roots", roots)
	inline := fmt.Sprintf("caCertificates:%s,credentialName:cert,", strings.ReplaceAll(roots, "\n", `\n`))
	translation{in, []string{verifies(inline), strings.NewReplacer("443", "444", "of c1",
		"of c1 secrets of other").Replace(verifies(inline))}}.runOf(t, "c1")
}
