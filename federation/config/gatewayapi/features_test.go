package gatewayapi

import (
	"strings"
	"testing"
)

// TestG25RoutesBySelectorServerNameAndOrigin: which namespaces a listener allows, connections
// whose TLS ends, and the answers to pages of other origins.
func TestG25RoutesBySelectorServerNameAndOrigin(t *testing.T) {
	for name, test := range map[string]translation{
		"namespaces that are selected by labels": {
			edge + "  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {a: b}}}}}\n" +
				route("r", rules("  - backendRefs: [{name: web, port: 80}]\n")),
			[]string{
				server,
				"NOT_HONOURED Gateway.gateway.networking.k8s.io shop/edge spec.listeners[0].allowedRoutes.namespaces.selector",
				"NOT_ALLOWED_BY_LISTENERS HTTPRoute.gateway.networking.k8s.io shop/r spec.parentRefs[0]",
			},
		},
		"namespaces that are selected by name": {
			edge +
				"  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [shop]}]}}}}\n" +
				route("r", rules("  - backendRefs: [{name: web, port: 80}]\n")) +
				strings.Replace(route("s", rules("  - backendRefs: [{name: web, port: 80}]\n")), "name: s, namespace: shop",
					"name: s, namespace: other", 1),
			[]string{
				server, all, "  {match:[{uri:{prefix:/}}],route:[{to:{host:web.other,port:{number:80}},weight:1}]}",
				"NOT_ALLOWED_BY_LISTENERS HTTPRoute.gateway.networking.k8s.io shop/r spec.parentRefs[0]",
			},
		},
		"K56 clients that are not verified": {
			strings.Replace(edge, "  listeners:", `  tls:
    frontend:
      default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: Secret, name: roots}]}}
  listeners:`, 1) + "  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}\n",
			[]string{
				"Gateway shop {hosts:[*],port:{name:https,number:443,protocol:HTTPS},tls:{caCertCredentialName:roots,credentialName:cert,insecureSkipVerify:true,mode:OPTIONAL_MUTUAL}}",
			},
		},
		"connections whose TLS ends go where the server name says": {
			edge + "  - {name: end, port: 443, protocol: TLS, hostname: \"*.example\", tls: {certificateRefs: [{name: cert}]}}\n" +
				strings.Replace(route("r", "  hostnames: [a.example]\n"+rules("  - backendRefs: [{name: web, port: 80}]\n")),
					"HTTPRoute", "TLSRoute", 1),
			[]string{
				"Gateway shop {hosts:[*.example],port:{name:tls,number:443,protocol:TLS},tls:{credentialName:cert,mode:SIMPLE}}",
				"Gateway shop {hosts:[a.example],port:{name:tls,number:443,protocol:TLS},tls:{credentialName:cert,mode:SIMPLE}}",
				"VirtualService shop a.example", "  {route:[{to:{host:web.shop,port:{number:80}},weight:1}]}",
			},
		},
		"pages of other origins": {
			plain + route("r",
				rules(`  - filters: [{type: CORS, cors: {allowOrigins: ["https://a.example:443", "http://*.b.example:8080"], allowMethods: [PUT], allowHeaders: [X-A], maxAge: 60}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {value: /all}}]
    filters: [{type: CORS, cors: {allowOrigins: ["*"], allowMethods: ["*"], allowHeaders: ["*"], exposeHeaders: [X-B, "*"], allowCredentials: true}}]
    backendRefs: [{name: web, port: 80}]
`)),
			[]string{
				server, all,
				"  {corsPolicy:{allowCredentials:true,allowHeaders:[*],allowMethods:[*],allowOrigins:[{regex:.*}],exposeHeaders:[X-B],maxAge:5s,unmatchedPreflights:IGNORE},match:[{uri:{exact:/all}},{uri:{prefix:/all/}}]," + web + "}",
				`  {corsPolicy:{allowCredentials:false,allowHeaders:[X-A],allowMethods:[PUT],allowOrigins:[{exact:https://a.example},{regex:http://[^/:]+\\.b\\.example:8080}],maxAge:60s,unmatchedPreflights:IGNORE},match:[{uri:{prefix:/}}],` + web + "}",
				"NOT_HONOURED HTTPRoute.gateway.networking.k8s.io shop/r spec.rules[1].filters[0].cors.exposeHeaders",
			},
		},
	} {
		t.Run(name, test.run)
	}
}

// TestG26WhatIsNotPossibleFailsClosed: nothing is sent in plain text that must have TLS, and no
// client is admitted without the certificate that it must have.
func TestG26WhatIsNotPossibleFailsClosed(t *testing.T) {
	for name, test := range map[string]translation{
		"certificates of clients": {
			strings.Replace(edge, "  listeners:", `  tls:
    frontend:
      default: {validation: {caCertificateRefs: [{group: "", kind: Secret, name: roots}]}}
      perPort:
      - {port: 444, tls: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: roots}]}}}
      - {port: 446, tls: {}}
      - {port: 447, tls: {validation: {caCertificateRefs: [{group: "", kind: Secret, name: roots, namespace: other}]}}}
  listeners:`, 1) + `  - {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
  - {name: b, port: 444, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
  - {name: d, port: 446, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
  - {name: e, port: 447, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
`,
			[]string{
				"Gateway shop {hosts:[*],port:{name:https,number:443,protocol:HTTPS},tls:{caCertCredentialName:roots,credentialName:cert,mode:MUTUAL}}",
				"Gateway shop {hosts:[*],port:{name:https,number:446,protocol:HTTPS},tls:{credentialName:cert,mode:SIMPLE}}",
				"NO_VALID_CA_CERTIFICATE Gateway.gateway.networking.k8s.io shop/edge spec.tls.frontend.perPort[0].tls.validation.caCertificateRefs",
				"INVALID_CA_CERTIFICATE_REF Gateway.gateway.networking.k8s.io shop/edge spec.tls.frontend.perPort[0].tls.validation.caCertificateRefs[0]",
				"NO_VALID_CA_CERTIFICATE Gateway.gateway.networking.k8s.io shop/edge spec.tls.frontend.perPort[2].tls.validation.caCertificateRefs",
				"REF_NOT_PERMITTED Gateway.gateway.networking.k8s.io shop/edge spec.tls.frontend.perPort[2].tls.validation.caCertificateRefs[0]",
			},
		},
	} {
		t.Run(name, test.run)
	}
}
