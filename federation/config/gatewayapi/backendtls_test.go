package gatewayapi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// authority is a certificate of an authority, PEM.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// configMap is one as the hub keeps it.
func configMap(name, authorities string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop}\nspec: {ca.crt: %q}\n", name, authorities)
}

// policy is a BackendTLSPolicy of the namespace shop.
func policy(name, targets, validation string) string {
	return fmt.Sprintf("---\napiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: %s, namespace: shop}\nspec: {targetRefs: [%s], validation: {hostname: a.example, %s}}\n",
		name, targets, validation)
}

const (
	onWeb    = `{group: "", kind: Service, name: web}`
	onPort   = `{group: "", kind: Service, name: web, sectionName: http-80}`
	system   = "wellKnownCACertificates: System"
	fromMap  = `caCertificateRefs: [{group: "", kind: ConfigMap, name: roots}]`
	onPolicy = "BackendTLSPolicy.gateway.networking.k8s.io shop/"
)

// speaks is the TLS that gateways speak to port 80 of web.
func speaks(authorities, names string) string {
	if authorities != "" {
		authorities = "caCertificates:" + strings.ReplaceAll(authorities, "\n", `\n`) + ","
	}
	return "BackendTLS shop of c1 web.shop {portLevelSettings:[{port:{number:80},tls:{" + authorities +
		"mode:SIMPLE,sni:a.example,subjectAltNames:[" + names + "]}}]}"
}

// TestG50BackendTLS: what gateways speak to a Service is what the policy of the port says, else
// that of the Service, of several the oldest; what cannot be verified gets nothing.
func TestG50BackendTLS(t *testing.T) {
	roots := authority(t)
	toWeb := plain + route("r", rules("  - backendRefs: [{name: web, port: 80}]\n"))
	routed := "  {match:[{uri:{prefix:/}}]," + web + "}"
	gateway := strings.Replace(server, "Gateway shop", "Gateway shop of c1", 1)
	host := strings.Replace(all, "VirtualService shop", "VirtualService shop of c1", 1)
	refused := []string{gateway, host, "  {500,match:[{uri:{prefix:/}}]}"}
	unsent := "UNSUPPORTED_PROTOCOL HTTPRoute.gateway.networking.k8s.io shop/r of cluster c1 spec.rules[0].backendRefs[0]"
	on := func(code, policy, field string) string {
		return code + " " + onPolicy + policy + " of cluster c1 " + field
	}
	for name, test := range map[string]translation{
		"the authorities of the system": {
			toWeb + policy("p", onWeb, system), []string{speaks("", "a.example"), gateway, host, routed},
		},
		"names that a certificate has": {
			toWeb + policy("p", onWeb, system+", subjectAltNames: [{type: Hostname, hostname: b.example}, {type: URI, uri: \"spiffe://a/b\"}]"),
			[]string{speaks("", "b.example,spiffe://a/b"), gateway, host, routed},
		},
		"the authorities of a ConfigMap": {
			toWeb + configMap("roots", "of tests\n"+roots) + policy("p", onWeb, fromMap),
			[]string{speaks(roots, "a.example"), gateway, host, routed},
		},
		"without the ConfigMap": {
			toWeb + policy("p", onWeb, fromMap), append(refused[:3:3],
				on("NO_VALID_CA_CERTIFICATE", "p", "spec.validation.caCertificateRefs"),
				on("INVALID_CA_CERTIFICATE_REF", "p", "spec.validation.caCertificateRefs[0]"), unsent),
		},
		"what is not a certificate": {
			toWeb + configMap("roots", "none") + policy("p", onWeb, fromMap), append(refused[:3:3],
				on("NO_VALID_CA_CERTIFICATE", "p", "spec.validation.caCertificateRefs"),
				on("INVALID_CA_CERTIFICATE_REF", "p", "spec.validation.caCertificateRefs[0]"), unsent),
		},
		"one of two references": {
			toWeb + configMap("roots", roots) + policy("p", onWeb,
				`caCertificateRefs: [{group: "", kind: Secret, name: roots}, {group: "", kind: ConfigMap, name: roots}]`),
			[]string{speaks(roots, "a.example"), gateway, host, routed, on("INVALID_KIND", "p", "spec.validation.caCertificateRefs[0]")},
		},
		"authorities that the hub does not know": {
			toWeb + policy("p", onWeb, "wellKnownCACertificates: example.com/all"),
			append(refused[:3:3], on("INVALID_POLICY", "p", "spec.validation.wellKnownCACertificates"), unsent),
		},
		"the older policy of a target, and that of the port": {
			toWeb + policy("old", onWeb, fromMap) + policy("new", onWeb, system) + policy("port", onPort, system) + policy("late", onPort,
				fromMap) + configMap("roots", roots),
			[]string{
				speaks("", "a.example"), gateway, host, routed,
				on("CONFLICTED", "late", "spec.targetRefs[0]"), on("CONFLICTED", "new", "spec.targetRefs[0]"),
			},
		},
		"targets that do not exist": {
			toWeb + policy("p", `{group: "", kind: Service, name: none}`, system) + policy("q",
				`{group: "", kind: Service, name: web, sectionName: none}`, system) +
				policy("r", `{group: example.com, kind: Bucket, name: b}`, system) + policy("s",
				`{group: "", kind: Service, name: none}, `+onWeb, system),
			[]string{
				speaks("", "a.example"), gateway, host, routed,
				on("TARGET_NOT_FOUND", "p", "spec.targetRefs[0]"), on("TARGET_NOT_FOUND", "q", "spec.targetRefs[0]"),
				on("INVALID_POLICY", "r", "spec.targetRefs[0]"), on("TARGET_NOT_FOUND", "s", "spec.targetRefs[0]"),
			},
		},
		"TLS that is passed on": {
			edge + "  - {name: pass, port: 443, protocol: TLS, tls: {mode: Passthrough}}\n" +
				strings.Replace(route("r", "  hostnames: [a.example]\n"+rules("  - backendRefs: [{name: web, port: 80}]\n")), "HTTPRoute", "TLSRoute",
					1) + policy("p", onWeb, system),
			[]string{
				speaks("", "a.example"), "Gateway shop of c1 {hosts:[*],port:{name:tls,number:443,protocol:TLS},tls:{mode:PASSTHROUGH}}",
				"VirtualService shop of c1 a.example",
				"  {match:[{sniHosts:[a.example]}],route:[{to:{host:refused.invalid,port:{number:1}},weight:1}]}",
				"NOT_HONOURED TLSRoute.gateway.networking.k8s.io shop/r of cluster c1 spec.rules[0].backendRefs[0]",
			},
		},
	} {
		t.Run(name, func(t *testing.T) { test.runOf(t, "c1") })
	}
}
